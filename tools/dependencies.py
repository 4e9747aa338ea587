"""Print the run-time dependencies of pyproject.toml, one requirement per line, for pip."""

import tomllib
from pathlib import Path

for requirement in tomllib.loads(Path("pyproject.toml").read_text())["project"]["dependencies"]:
    print(requirement.replace(" ", ""))
