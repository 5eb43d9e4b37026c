"""The command line. `entry.main` is the program; everything else is imported when a command needs it."""
