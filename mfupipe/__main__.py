"""`python -m mfupipe` is `mfupipe`."""

from mfupipe.cli import main

if __name__ == "__main__":
    main()
