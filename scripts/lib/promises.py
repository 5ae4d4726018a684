#!/usr/bin/env python3
"""Fails if a published crate promises an older Rust than one of its dependencies needs. Prints the oldest Rust that is
promised, the crates that promise it, and their features, except those of the arguments.

    scripts/lib/promises.py FEATURE...
"""

import json
import subprocess
import sys


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments, "--locked"], check=True, stdout=subprocess.PIPE, text=True).stdout


def number(version):
    """1.85 is the same as 1.85.0."""
    parts = [int(part) for part in (version or "0").split(".")]
    return parts + [0] * (3 - len(parts))


def dependencies(crate, features):
    """What a user's build of a crate has in it, on any system: names and versions."""
    tree = cargo("tree", "-p", crate, "--edges=normal,build", "--target=all", "--prefix=none", "--features", features)
    return {tuple(line.split()[:2]) for line in tree.splitlines() if line}


except_for = sys.argv[1:]
packages = json.loads(cargo("metadata", "--format-version=1", "--all-features"))["packages"]
needs = {(package["name"], "v" + package["version"]): package["rust_version"] for package in packages}
# `publish = false` is an empty list of registries.
crates = {package["name"]: package for package in packages if not package["source"] and package["publish"] is None}
# Without the crate's name, which would be taken for that of a dependency where a crate's tests depend on itself.
features = {
    crate: [feature for feature in package["features"] if feature not in except_for]
    for crate, package in crates.items()
}

broken = False
for crate, package in crates.items():
    promised = package["rust_version"]
    for name, version in sorted(dependencies(crate, ",".join(features[crate]))):
        needed = needs[name, version]
        if number(needed) > number(promised):
            print(f"{crate} promises Rust {promised}, and {name} {version} needs {needed}", file=sys.stderr)
            broken = True
if broken:
    sys.exit(1)

oldest = min((package["rust_version"] for package in crates.values()), key=number)
those = [crate for crate, package in crates.items() if package["rust_version"] == oldest]
print(oldest, ",".join(those), ",".join(sorted({feature for crate in those for feature in features[crate]})))
