"""Arrays of any library: which one it is, products, threads, devices, and checks of what users give.

The names of `library` and `cells` can be imported from here: from hubless.arrays import namespace.
"""

from .cells import *  # noqa: F403
from .library import *  # noqa: F403
