#!/usr/bin/env python3
"""mtan as package managers of boards want it: one archive for each, and one of the sources.

    dist.py MODEL.h [FOLDER]     FOLDER is build/dist

MODEL.h is the model of the examples (tools/dist/example.sh). What is said and packed stands in tools/dist/facts. The same sources and
model give the same bytes: members are sorted, and have no owner and no date. Standard library alone.
"""
import gzip
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATE = 315532800  # 1980, the first that a zip can have
TEXTS = ("name", "licence", "author", "sentence", "paragraph", "keywords", "url", "arduino", "platformio")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def read_facts():
    """The table as {"text": {key: value}, "file": rows, "replace": rows, "archive": rows}."""
    facts = {"text": {}, "file": [], "replace": [], "archive": []}
    for line in read(os.path.join(HERE, "facts")).decode().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        key, rest = line.split(None, 1)
        if key in TEXTS:
            facts["text"][key] = rest.strip()
        else:  # quotes are a part of what is replaced
            facts[key].append(shlex.split(rest, posix=False))
    header = read(os.path.join(ROOT, "mtan.h")).decode()
    facts["text"]["version"] = re.search(r'^#define MTAN_VERSION "([^"]+)"$', header, re.M).group(1)
    return facts


def fill(template, text):
    """@key@ becomes its value; @key:,@ a list without blanks. A key that the table has not is a KeyError."""
    def value(match):
        return text[match[1]] if not match[2] else ",".join(x.strip() for x in text[match[1]].split(","))
    return re.sub(r"@([a-z]+)(:,)?@", value, template)


def tree(folder):
    """Every file below a folder, by its path from there."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            found[os.path.relpath(path, folder)] = path
    return found


def board_files(facts, ecosystem, example, model):
    """What an archive for boards holds, {path: bytes}."""
    files = {to: read(os.path.join(ROOT, source)) for to, source in facts["file"]}
    for to, before, after in facts["replace"]:
        if files[to].count(before.encode()) != 1:
            raise SystemExit(f"mtan: {to}: {before} must stand there once")
        files[to] = files[to].replace(before.encode(), after.encode())
    for path, source in tree(os.path.join(HERE, ecosystem)).items():
        files[path] = fill(read(source).decode(), facts["text"]).encode()
    for path, source in tree(os.path.join(HERE, "example")).items():
        files[f"{example}/{path}"] = read(source)
    files[f"{example}/model.h"] = read(model)
    return files


def source_files():
    """What git has, {path: (bytes, executable)}."""
    rows = subprocess.run(["git", "ls-files", "-z", "-s"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode()
    paths = [row.split("\t", 1) for row in rows.split("\0") if row]
    return {path: (read(os.path.join(ROOT, path)), about.startswith("100755")) for about, path in paths}


def write_tar(path, top, files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            data, program = files[name] if isinstance(files[name], tuple) else (files[name], False)
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode, member.mtime = len(data), 0o755 if program else 0o644, DATE
            tar.addfile(member, io.BytesIO(data))
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
        out.write(packed.getvalue())


def write_zip(path, top, files):
    with zipfile.ZipFile(path, "w") as out:
        for name in sorted(files):
            member = zipfile.ZipInfo(f"{top}/{name}", (1980, 1, 1, 0, 0, 0))
            member.external_attr, member.create_system = 0o100644 << 16, 3
            out.writestr(member, files[name], zipfile.ZIP_DEFLATED, 9)


def main(model, folder="build/dist"):
    facts = read_facts()
    name, version = facts["text"]["name"], facts["text"]["version"]
    os.makedirs(folder, exist_ok=True)
    for ecosystem, ending, example in facts["archive"]:
        path = f"{folder}/{name}-{version}-{ecosystem}.{ending}"
        write = write_zip if ending == "zip" else write_tar
        write(path, name, board_files(facts, ecosystem, example, model))
        print(path)
    path = f"{folder}/{name}-{version}.tar.gz"
    write_tar(path, f"{name}-{version}", source_files())
    print(path)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
