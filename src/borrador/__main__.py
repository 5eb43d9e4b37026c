"""`python -m borrador` is `borrador`."""

import sys

from borrador.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
