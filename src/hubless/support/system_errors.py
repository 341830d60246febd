"""What the operating system refuses, in words: which file, why, and what to do."""

import errno

_REASONS = {  # of what is refused: why, and what to do
    errno.EACCES: (
        "permission denied",
        "Give a path that this user may read and write, or change its permissions.",
    ),
    errno.EPERM: (
        "the system does not permit it",
        "Give a path that this user may read and write, or change its owner.",
    ),
    errno.ENOENT: (
        "it, or the folder it is in, does not exist",
        "Check the path, and create the folder first.",
    ),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "Give a path through folders alone."),
    errno.EISDIR: ("it is a folder", "Give the name of a file."),
    errno.EEXIST: ("it exists already and is not changed", "Give another name, or remove it first."),
    errno.ENOTEMPTY: ("the folder is not empty", "Give another name, or remove it first."),
    errno.ENAMETOOLONG: ("the name is too long for this disk", "Give a shorter one."),
    errno.ELOOP: ("links on this path lead back to themselves", "Remove the link, or give another path."),
    errno.ENOSPC: ("the disk is full", "Free some space, or give a path on another disk; then run it again."),
    errno.EDQUOT: (
        "the disk quota of this user is used up",
        "Free some space, or give a path on another disk; then run it again.",
    ),
    errno.EFBIG: ("the file is too large for this disk", "Give a path on another disk."),
    errno.EROFS: ("this disk can only be read", "Give a path on another disk."),
    errno.EXDEV: ("the two paths are on different disks", "Give paths on one disk."),
    errno.EIO: (
        "the disk reported an error",
        "Check the disk, then run it again; restore a damaged file from a backup.",
    ),
    errno.EBUSY: ("another program uses it", "Stop that program, or give another path."),
    errno.ESTALE: ("the network disk has lost it", "Mount the disk again, then run it again."),
    errno.EMFILE: ("too many files are open", "Raise the limit (`ulimit -n`), or give fewer parts at once."),
    errno.ENFILE: ("too many files are open on this machine", "Stop other programs, then run it again."),
    errno.ENOMEM: ("memory is used up", "Stop other programs, or give less data at once."),
    errno.ECONNREFUSED: ("no server answers there", "Check the address, and that the server runs."),
    errno.ECONNRESET: ("the server closed the connection", "Check that the server runs, then run it again."),
    errno.ETIMEDOUT: ("there was no answer in time", "Check the address, and that the server runs."),
    errno.EHOSTUNREACH: ("this machine cannot be reached", "Check the address and the network."),
    errno.ENETUNREACH: ("the network cannot be reached", "Check the network, then run it again."),
}
_ADVICE = "Check that the path is right, and that this user may read and write there."


def explain(error: OSError, path: object = None) -> str:
    """Return an error of the system as a sentence; one that has words of its own as it is.

    `path` is what the user named, where the error is about another file, such as a temporary one.
    """
    if error.errno is None or error.strerror is None:
        return str(error)
    named = next((name for name in (path, error.filename2, error.filename) if name is not None), None)
    named = named.decode(errors="replace") if isinstance(named, bytes) else named
    reason, advice = _REASONS.get(error.errno, ("", _ADVICE))
    about = error.strerror.rstrip(".")
    if named is not None:
        about, reason = str(named), reason or about
    return ": ".join(filter(None, (about, reason))) + f". {advice}"
