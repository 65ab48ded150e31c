#!/usr/bin/env python3
"""Checks the archives of dist.py as those will who take them: `make dist-check`.

    check.py MTAN FOLDER

Each archive is made twice, its model by MTAN, and compared, unpacked under FOLDER/check, and its manifest compared with the facts and with the
fields that the ecosystem's documentation names. Then its own tools look at it, where they are installed:

    pip install platformio idf-component-manager jsonschema pyyaml
    ARDUINO_LINT=checkout, for its schemas; ZEPHYR_BASE=checkout, and ZEPHYR_MODULES=folder of its module cmsis_6

and its example is compiled from it for a Cortex-M4F and run in qemu. The last line is the sum. A tool that is missing is a skip.
"""
import configparser
import filecmp
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.dont_write_bytecode = True  # beside the sources
import dist

FLAGS = ("-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -ffunction-sections -fdata-sections -Wall -Wextra "
         "-Wshadow -Werror")
BOARD = os.path.join(dist.ROOT, "platform", "cortex-m")
STAND_IN = os.path.join(dist.HERE, "stand-in")
LINK = f"-nostartfiles --specs=nano.specs --specs=nosys.specs -Wl,--gc-sections,--defsym=end=image_bss_end -L{BOARD} -T {BOARD}/mps2.ld"
QEMU = ("qemu-system-arm -M mps2-an386 -nographic -monitor none -serial none -semihosting-config enable=on,target=native "
        "-kernel").split()
count = {"ok": 0, "FAILED": 0, "skipped": 0}


class Bad(Exception):
    """What is wrong."""


class Missing(Exception):
    """What is not installed here."""


def attempt(what, check, *arguments):
    """Runs one check and prints its row."""
    try:
        verdict, remark = "ok", check(*arguments) or ""
    except Missing as missing:
        verdict, remark = "skipped", str(missing)
    except (Bad, OSError, KeyError, ValueError, AttributeError, subprocess.SubprocessError) as error:
        verdict, remark = "FAILED", f"{type(error).__name__}: {error}"
    count[verdict] += 1
    print(f"{verdict:7} {what:34} {remark}".rstrip(), flush=True)


def demand(condition, what):
    if not condition:
        raise Bad(what)


def run(words, **settings):
    """A program that must end well; what it said."""
    words = words.split() if isinstance(words, str) else words
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False, **settings)
    said = done.stdout.decode(errors="replace")
    demand(done.returncode == 0, f"{' '.join(words)[:200]} ended with {done.returncode}:\n{said[-3000:]}")
    return said


def need(program, how):
    if not shutil.which(program):
        raise Missing(f"no {program}: {how}")


def need_module(name, how):
    if importlib.util.find_spec(name) is None:
        raise Missing(f"no Python module {name}: pip install {how}")


def text_of(*path):
    return dist.read(os.path.join(*path)).decode()


# ---- archives ----

def same_again(archive, again):
    demand(filecmp.cmp(archive, again, shallow=False), "made twice, it has other bytes")


def unpack(archive, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if archive.endswith(".zip"):
        with zipfile.ZipFile(archive) as packed:
            names = packed.namelist()
            packed.extractall(folder)
    else:
        with tarfile.open(archive) as packed:
            names = packed.getnames()
            packed.extractall(folder)
    demand(names == sorted(names), "its members are not sorted")
    demand(len({name.split("/")[0] for name in names}) == 1, "it has more than one folder at the top")
    return f"{len(names)} files, {os.path.getsize(archive)} bytes"


def no_template_left(folder, names):
    for path, source in dist.tree(folder).items():
        if path.startswith("src/") or path.endswith("model.h"):
            continue
        left = re.search(r"@[a-z:,]+@", text_of(source))
        demand(not left, f"{path} still has {left[0] if left else ''}")
    for name in names:
        demand(os.path.isfile(os.path.join(folder, name)), f"{name} is missing")


# ---- manifests, from the documentation ----

VERSION = r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$"


def check_platformio(folder, text):
    manifest = json.loads(text_of(folder, "library.json"))
    known = {"$schema", "name", "version", "description", "keywords", "homepage", "repository", "authors", "license", "frameworks",
             "platforms", "headers", "examples", "dependencies", "export", "scripts", "build"}
    demand(set(manifest) <= known, f"library.json has the unknown {set(manifest) - known}")
    demand(manifest["name"] == text["name"] and manifest["version"] == text["version"], "name or version")
    demand(re.match(VERSION, manifest["version"]) and len(manifest["version"]) <= 20, "version")
    demand(len(manifest["description"]) <= 255, f"description: {len(manifest['description'])} characters, at most 255")
    demand(all(re.match(r"[a-z\d+_\-. ]{1,50}$", word.strip()) for word in manifest["keywords"].split(",")), "keywords")
    demand(all(re.match(r"[a-z\d_-]+$", word.strip()) for word in manifest["platforms"].split(",")), "platforms")
    no_template_left(folder, [f"src/{manifest['headers']}"] + [f"{x['base']}/{f}" for x in manifest["examples"] for f in x["files"]])
    ini = configparser.ConfigParser()
    ini.read(os.path.join(folder, "examples/classify/platformio.ini"))
    demand(ini["env:classify"]["framework"] == "arduino", "platformio.ini")


CATEGORIES = ("Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage", "Data Processing", "Other")


def properties(folder):
    rows = [row.split("=", 1) for row in text_of(folder, "library.properties").splitlines() if row and not row.startswith("#")]
    demand(len(rows) == len({key for key, _ in rows}), "a property is given twice")
    return dict(rows)


def check_arduino(folder, text):
    p = properties(folder)
    required = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    known = required | {"depends", "dot_a_linkage", "includes", "precompiled", "ldflags"}
    demand(required <= set(p) <= known, f"library.properties: {required - set(p)} missing, {set(p) - known} unknown")
    demand(p["name"] == text["name"] and p["version"] == text["version"], "name or version")
    demand(re.match(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}$", p["name"]) and not p["name"].lower().startswith("arduino"), "name")
    demand(re.match(VERSION, p["version"]), "version")
    demand(p["category"] in CATEGORIES and p["url"].startswith("https://"), "category or url")
    demand(all(re.match(r"[a-z0-9_]+$", word) for word in p["architectures"].split(",")), "architectures")
    no_template_left(folder, [f"src/{name}" for name in p["includes"].split(",")])
    for path in dist.tree(folder):
        parts = path.split("/")
        demand(not path.endswith(".ino") or parts[0] == "examples" and parts[-2] + ".ino" == parts[-1], f"{path}: a sketch has its folder's name")
        demand(re.match(r"[A-Za-z0-9_.\-/]+$", path), f"{path}: a name that Arduino refuses")
    compiled = [path for path in dist.tree(os.path.join(folder, "src")) if re.search(r"\.(c|cpp|S)$", path)]
    demand(compiled == ["mtan_predict.c"], f"Arduino would compile {compiled}")


def load_yaml(*path):
    need_module("yaml", "pyyaml")
    import yaml
    return yaml.safe_load(text_of(*path))


def check_esp_idf(folder, text):
    no_template_left(folder, ["CMakeLists.txt", "Kconfig", "LICENSE", "README.md"])
    manifest = load_yaml(folder, "idf_component.yml")
    known = {"version", "maintainers", "description", "license", "license_file", "tags", "url", "repository", "documentation", "issues", "discussion",
             "targets", "dependencies", "files", "examples", "repository_info"}
    demand(set(manifest) <= known, f"idf_component.yml has the unknown {set(manifest) - known}")
    demand(manifest["version"] == text["version"] and manifest["license"] == text["licence"], "version or licence")
    demand(all(re.match(r"[A-Za-z0-9_-]{3,32}$", tag) for tag in manifest["tags"]), "tags")
    for example in manifest["examples"]:
        demand(os.path.isfile(os.path.join(folder, example["path"], "CMakeLists.txt")), f"{example['path']} is no project")
    for row in re.findall(r'SRCS "([^"]+)" INCLUDE_DIRS "([^"]+)"', text_of(folder, "CMakeLists.txt")):
        demand(os.path.isfile(os.path.join(folder, row[0])) and os.path.isdir(os.path.join(folder, row[1])), f"{row} is missing")


def check_zephyr(folder, text):
    no_template_left(folder, ["zephyr/module.yml", "LICENSE", "README.md"])
    module = load_yaml(folder, "zephyr/module.yml")
    demand(set(module) <= {"name", "build", "tests", "samples", "boards", "blobs", "security", "package-managers", "runners"}, "module.yml has unknown keys")
    demand(module["name"] == text["name"], "name")
    build = module["build"]
    demand(os.path.isfile(os.path.join(folder, build["cmake"], "CMakeLists.txt")) and os.path.isfile(os.path.join(folder, build["kconfig"])), "build")
    declared = set(re.findall(r"^config (\w+)$", text_of(folder, build["kconfig"]), re.M))
    for sample in module["samples"]:
        for path, source in dist.tree(os.path.join(folder, sample)).items():
            if path.endswith("prj.conf"):
                ours = set(re.findall(r"^CONFIG_(MTAN\w*)=", text_of(source), re.M))
                demand(ours and ours <= declared, f"{path} sets {ours - declared}, which no Kconfig declares")
            if path.endswith("sample.yaml"):
                demand(set(load_yaml(source)) == {"sample", "common", "tests"}, path)


# ---- the ecosystems' own tools ----

def pack_platformio(folder, packed):
    """pio asks the network for the list of licences. Without it the rest is packed, and the remark says so."""
    try:
        run(["pio", "pkg", "pack", "-o", packed, folder])
        return "pio pkg pack"
    except Bad as error:
        if "{'license': ['Could not load SPDX licenses for validation']}" not in str(error):
            raise
    rest = os.path.join(os.path.dirname(folder), "without-licence")
    shutil.copytree(folder, rest)
    manifest = json.loads(text_of(rest, "library.json"))
    demand(manifest.pop("license") == "MIT", "licence")
    with open(os.path.join(rest, "library.json"), "w", encoding="utf-8") as out:
        json.dump(manifest, out)
    run(["pio", "pkg", "pack", "-o", packed, rest])
    return "pio pkg pack (but for the licence, whose names it must fetch)"


def tool_platformio(folder, archive):
    need("pio", "pip install platformio")
    packed, storage = (os.path.join(os.path.dirname(folder), name) for name in ("pio.tar.gz", "pio-storage"))
    remark = pack_platformio(folder, packed)
    with tarfile.open(packed) as made:
        demand({"library.json", "src/mtan_predict.c", "examples/classify/src/model.h"} <= set(made.getnames()), "pio packs other files")
    os.makedirs(storage)
    run(["pio", "pkg", "install", "--global", "--storage-dir", storage, "--library", f"file://{os.path.abspath(archive)}"])
    demand(os.path.isfile(os.path.join(storage, "mtan", "library.json")), "pio installs it elsewhere")
    return remark + ", pio pkg install"


def tool_arduino(folder, _archive):
    """arduino-lint itself where it is installed, else the schemas of a checkout of it."""
    if shutil.which("arduino-lint"):
        run(["arduino-lint", "--compliance", "strict", "--library-manager", "submit", "--project-type", "library", folder])
        return "arduino-lint --compliance strict"
    checkout = os.environ.get("ARDUINO_LINT")
    if not checkout:
        raise Missing("no arduino-lint, and no ARDUINO_LINT=checkout of it for its schemas")
    need_module("jsonschema", "jsonschema")
    import jsonschema
    import referencing
    schemas = os.path.join(checkout, "etc", "schemas")
    loaded = {name: json.loads(text_of(schemas, name)) for name in os.listdir(schemas)}
    known = referencing.Registry().with_resources((x["$id"], referencing.Resource.from_contents(x)) for x in loaded.values())
    top = loaded["arduino-library-properties-strict-schema.json"]
    errors = list(jsonschema.Draft7Validator(top, registry=known).iter_errors(properties(folder)))
    demand(not errors, "; ".join(error.message for error in errors))
    return "arduino-lint's strict schema"


def tool_esp_idf(folder, _archive):
    need_module("idf_component_tools", "idf-component-manager")
    from idf_component_tools.manager import ManifestManager
    manifest = ManifestManager(folder, "mtan").load()
    demand(str(manifest.version) == dist.read_facts()["text"]["version"], "version")
    if not shutil.which("compote"):
        return "its manifest"
    packed = os.path.join(os.path.dirname(folder), "compote")
    run(["compote", "component", "pack", "--name", "mtan", "--dest-dir", packed], cwd=folder)
    return "its manifest; compote component pack"


def tool_zephyr(folder, _archive):
    """Zephyr's own check of a module; with ZEPHYR_MODULES, a folder of its module cmsis_6, its build of the sample too."""
    base, modules = os.environ.get("ZEPHYR_BASE"), os.environ.get("ZEPHYR_MODULES")
    if not base:
        raise Missing("no ZEPHYR_BASE=checkout")
    need_module("jsonschema", "jsonschema")
    out, made = (os.path.join(os.path.dirname(folder), name) for name in ("module.txt", "zephyr"))
    run([sys.executable, os.path.join(base, "scripts", "zephyr_module.py"), "--zephyr-base", base, "--modules", folder, "--cmake-out", out])
    demand('"mtan"' in text_of(out), "Zephyr does not see the module")
    if not modules:
        return "zephyr_module.py; no ZEPHYR_MODULES=folder of cmsis_6 to build with"
    prefix = (shutil.which("arm-none-eabi-objcopy") or "").removesuffix("objcopy")  # not that of ccache, which has compilers alone
    settings = {"ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile", "CROSS_COMPILE": prefix, **os.environ}
    run(["cmake", "-S", os.path.join(folder, "samples", "classify"), "-B", made, "-DBOARD=mps2/an386", f"-DZEPHYR_MODULES={modules}",
         f"-DZEPHYR_EXTRA_MODULES={folder}"], env=settings)
    said = run(["cmake", "--build", made], env=settings)
    used = re.findall(r"(FLASH|RAM): +(\d+) B", said)
    shares = run_image(os.path.join(made, "zephyr", "zephyr.elf"), zephyr=True)
    return f"zephyr_module.py; built by Zephyr: {', '.join(' '.join(x) for x in used)}; {shares}"


# ---- compiled from the archive, and run ----

def objects(sources, folder, *flags):
    made = []
    for source in sources:
        made.append(os.path.join(folder, os.path.basename(source) + ".o"))
        language = "-std=c99" if source.endswith(".c") else "-std=c++11 -fno-exceptions -fno-rtti -x c++"
        compiler = "arm-none-eabi-gcc" if source.endswith(".c") else "arm-none-eabi-g++"
        run([compiler, *language.split(), *FLAGS.split(), f"-I{BOARD}", *flags, "-c", source, "-o", made[-1]])
    return made


def image_of_sources(library, example, folder, *flags):
    """As Arduino and PlatformIO do: every file of src/, and the sketch as C++."""
    sources = [path for path in dist.tree(os.path.join(library, "src")).values() if re.search(r"\.(c|cpp|S)$", path)]
    board = [f"{BOARD}/startup.c", f"{BOARD}/semihosting.c", f"{STAND_IN}/console.c", f"{STAND_IN}/arduino/sketch.cpp"]
    os.makedirs(folder, exist_ok=True)
    made = objects(board, folder) + objects(sources, folder, *flags)
    made += objects([example], folder, "-include", f"{STAND_IN}/arduino/Arduino.h", f"-I{STAND_IN}/arduino", f"-I{library}/src", *flags)
    elf = os.path.join(folder, "image.elf")
    run(["arm-none-eabi-gcc", *FLAGS.split(), *LINK.split(), *made, "-o", elf])
    return elf


def image_of_cmake(example, folder, *definitions, **environment):
    need("cmake", "apt-get install cmake")
    shutil.rmtree(folder, ignore_errors=True)
    settings = dict(os.environ, BOARD_ROOT=dist.ROOT, BOARD_FLAGS=FLAGS, BOARD_LINK=LINK, **environment)
    run(["cmake", "-S", example, "-B", folder, f"-DCMAKE_TOOLCHAIN_FILE={STAND_IN}/cortex-m4f.cmake", *definitions], env=settings)
    run(["cmake", "--build", folder], env=settings)
    return os.path.join(folder, "image.elf")


def image_of(ecosystem, folder):
    made = os.path.join(os.path.dirname(folder), "image")
    if ecosystem == "arduino":
        return image_of_sources(folder, f"{folder}/examples/classify/classify.ino", made)
    if ecosystem == "platformio":
        return image_of_sources(folder, f"{folder}/examples/classify/src/main.cpp", made, "-DMTAN_SMALL_ONLY")
    if ecosystem == "esp-idf":
        return image_of_cmake(f"{folder}/examples/classify", made, IDF_PATH=f"{STAND_IN}/esp-idf")
    return image_of_cmake(f"{folder}/samples/classify", made, f"-DZephyr_DIR={STAND_IN}/zephyr", f"-DZEPHYR_EXTRA_MODULES={folder}")


def run_image(elf, zephyr=False):
    """What the example prints. Zephyr's goes to a serial line and never ends: it is stopped after 20 seconds."""
    need(QEMU[0], "compiled, not run: apt-get install qemu-system-arm")
    words = ["timeout", "20", *QEMU, elf]
    if zephyr:
        words[words.index("none", words.index("-serial"))] = "stdio"
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    said = done.stdout.decode(errors="replace").replace("\r", "")
    demand(zephyr or done.returncode == 0, f"ended with {done.returncode}: {said!r}")
    shares = re.findall(r"^(sick|well): (\d+)$", said, re.M)
    demand("self-test: passed\n" in said, f"its output is {said!r}")
    demand([name for name, _ in shares] == ["sick", "well"] and 999 <= sum(int(x) for _, x in shares) <= 1001, f"its output is {said!r}")
    demand(int(shares[0][1]) > 500, f"the patient is sick, and its output is {said!r}")
    return ", ".join(" ".join(share) for share in shares)


def check_example(ecosystem, folder):
    need("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi")
    elf = image_of(ecosystem, folder)
    sizes = run(["arm-none-eabi-size", elf]).splitlines()[-1].split()
    return f"{sizes[0]} bytes of code and constants; {run_image(elf)}"


def check_source(folder, text):
    run(["make", "-s", "-C", folder, "build/libmtan.a"])
    demand(f'"{text["version"]}"' in text_of(folder, "mtan.h") and os.access(os.path.join(folder, ".ci/run"), os.X_OK), "version or modes")
    return "make lib"


MANIFESTS = {"platformio": check_platformio, "arduino": check_arduino, "esp-idf": check_esp_idf, "zephyr": check_zephyr}
TOOLS = {"platformio": tool_platformio, "arduino": tool_arduino, "esp-idf": tool_esp_idf, "zephyr": tool_zephyr}


def main(mtan, out):
    facts = dist.read_facts()
    text, again = facts["text"], os.path.join(out, "check", "again")
    shutil.rmtree(os.path.join(out, "check"), ignore_errors=True)
    os.makedirs(again)
    run([os.path.join(dist.HERE, "example.sh"), mtan, os.path.join(again, "model.h")])
    run([sys.executable, dist.__file__, os.path.join(again, "model.h"), again])
    for ecosystem, ending, _example in facts["archive"] + [["source", "tar.gz", ""]]:
        name = f"{text['name']}-{text['version']}" + (f"-{ecosystem}" if ecosystem != "source" else "") + f".{ending}"
        archive, where = os.path.join(out, name), os.path.join(os.path.abspath(out), "check", ecosystem)
        attempt(f"{ecosystem}: the same bytes twice", same_again, archive, os.path.join(again, name))
        attempt(f"{ecosystem}: unpacked", unpack, archive, where)
        if ecosystem == "source":
            attempt("source: builds", check_source, os.path.join(where, f"{text['name']}-{text['version']}"), text)
            continue
        folder = os.path.join(where, text["name"])
        attempt(f"{ecosystem}: manifest", MANIFESTS[ecosystem], folder, text)
        attempt(f"{ecosystem}: its own tools", TOOLS[ecosystem], folder, archive)
        attempt(f"{ecosystem}: example on a Cortex-M4F", check_example, ecosystem, folder)
    print(f"{count['ok']} passed, {count['FAILED']} failed, {count['skipped']} skipped")
    return count["FAILED"] > 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    sys.exit(main(*sys.argv[1:]))
