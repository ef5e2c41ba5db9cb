"""`python -m highwater`: the program itself, with the same arguments."""

import subprocess
import sys

from ._program import program

if __name__ == "__main__":
    sys.exit(subprocess.run([program(), *sys.argv[1:]], check=False).returncode)
