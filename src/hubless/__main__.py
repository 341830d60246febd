"""python -m hubless is the command hubless."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
