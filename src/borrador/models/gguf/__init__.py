"""GGUF files: a bounded reader of our own, for versions 2 and 3."""

from borrador.models.gguf.cursor import MetadataValue
from borrador.models.gguf.file import GgufFile
from borrador.models.gguf.formats import TensorFormat
from borrador.models.gguf.tensors import TensorInfo

__all__ = ["GgufFile", "MetadataValue", "TensorFormat", "TensorInfo"]
