from . import distributed, nn
