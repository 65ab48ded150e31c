#!/usr/bin/env python3
"""Does some test fail when mtan.c is wrong? Makes small faults in it, one at a time, and runs the tests: `make
mutants`.

    mutants.py COUNT SEED JOBS again|anew COMPILE LINK LIBRARIES SANITIZE

COMPILE makes an object; LINK and LIBRARIES go before and after it when the tests are linked; SANITIZE are flags.

A mutant is one change within a function: another comparison, another operation, another constant, a negated condition,
a statement or a `!` taken out, or a wrong error return. The seed and the text of function and line decide which mutants
are made, so that a change of mtan.c elsewhere leaves the choice as it is.

All mutants are compiled at once: a function with mutants gets their bodies next to its own, and MTAN_MUTANT selects the
one that runs. The suites of tests/library run test by test, each in a separate process. The first round, without a
fault, shows how long each test takes and which functions it reaches. A mutant then meets the tests that reach its
function, the quickest first, until one fails, crashes, hangs, or takes several times its usual time. Mutants that
survive and are not judged meet them once more, with the sanitizers in mtan.c, as in gcc-sanitize of `make test`.

A mutant that does not compile does not count, nor does one that compiles to exactly the object of mtan.c. Any other
survivor must have a paragraph in tests/mutants_judged.txt:

    function
    - the line as it is
    + the line with the fault
    the reason, in as many lines as it needs

At least 95 of 100 have to be killed. The last line is the sum: killed, failed (survived without a judgement, or judged
unnecessarily), skipped (survived and judged). `again` runs only those that survived the last run and are not judged,
and requires no percentage.
"""
import filecmp
import hashlib
import math
import os
import re
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

SOURCE = "mtan.c"
JUDGED = "tests/mutants_judged.txt"
FOLDER = "build/mutants"
SURVIVORS = FOLDER + "/survivors"
SHARE = 0.95
SLOWEST = 10  # seconds of CPU time: slower tests are left out

# Linked with the mutants: MTAN_MUTANT selects one; MTAN_MUTANT_REACHED is the file for the functions that were entered.
CHOOSER = """
#include <stdio.h>
#include <stdlib.h>
int mutant_chosen;
char mutant_reached[%d];
static void tell(void) {
    FILE *f = fopen(getenv("MTAN_MUTANT_REACHED"), "w");
    for (size_t i = 0; f && i < sizeof mutant_reached; i++)
        if (mutant_reached[i]) fprintf(f, "%%d\\n", (int)i);
    if (f) fclose(f);
}
__attribute__((constructor)) static void choose(void) {
    if (getenv("MTAN_MUTANT")) mutant_chosen = atoi(getenv("MTAN_MUTANT"));
    if (getenv("MTAN_MUTANT_REACHED")) atexit(tell);
}
"""


class Function:
    """Its body is text[start:end] of the source."""

    def __init__(self, name, start, end):
        self.name, self.start, self.end = name, start, end


class Mutant:
    """One fault: text[start:end] of the source becomes `new`."""

    def __init__(self, text, function, start, end, new):
        self.function, self.start, self.end, self.new = function, start, end, new
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        self.key = (function.name, text[first:last].strip(), (text[first:start] + new + text[end:last]).strip())

    def apply(self, text, start, end):
        """text[start:end] with the fault in it"""
        return text[start:self.start] + self.new + text[self.end:end]

    def __str__(self):
        return "{}\n- {}\n+ {}\n".format(*self.key)


# ---- places for faults ----

def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def masked(text):
    """The text with blanks in place of comments, strings, characters and preprocessor lines; positions stay the
    same."""
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)
    return re.sub(r"^#(?:\\\n|[^\n])*", blank, text, flags=re.M)


def functions(code):
    pattern = r"^\w[^;{}=\n]*?\b(\w+)\([^;{}]*\) \{ *$(.*?)^\}"
    return [Function(m.group(1), m.start(2), m.end(2)) for m in re.finditer(pattern, code, re.M | re.S)]


def compiled_lines(command):
    """Numbers of the source's lines that remain after the preprocessor."""
    words = [w for w in command if w != "-c"] + ["-E", SOURCE]
    lines, at = set(), None
    for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n"):
        marker = re.match(r'# (\d+) "(.*?)"', line)
        if marker:
            at = int(marker.group(1)) if marker.group(2) == SOURCE else None
        elif at is not None:
            if line.strip():
                lines.add(at)
            at += 1
    return lines


# ---- faults of a line: each yields (start, end, new) ----

SWAPS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("!=",), "!=": ("==",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "&": ("|",), "|": ("&",), "^": ("|",),
    "<<": (">>",), ">>": ("<<",), "&&": ("||",), "||": ("&&",),
    "+=": ("-=", "="), "-=": ("+=", "="), "*=": ("/=", "="), "/=": ("*=",), "|=": ("&=",), "&=": ("|=",), "^=": ("|=",),
}


def operators(line):
    for m in re.finditer(r"(?<= )[-+*/%<>=!&|^]{1,3}(?= |$)", line):
        for new in SWAPS.get(m.group(), ()):
            yield m.start(), m.end(), new
    if not line.lstrip().startswith("for "):  # a for loop that counts the other way only hangs
        for m in re.finditer(r"\+\+|--", line):
            yield m.start(), m.end(), "--" if m.group() == "++" else "++"


def constants(line):
    for m in re.finditer(r"(?<![\w.])(0x[0-9A-Fa-f]+|\d+\.?\d*(?:e[-+]?\d+)?)([uUlLfF]*)(?![\w.])", line):
        number, kind = m.groups()
        yield m.start(), m.end(), f"{int(number) + 1}{kind}" if number.isdigit() else f"({m.group()} + 1)"
        if number != "0":
            yield m.start(), m.end(), "0"


def conditions(line):
    for m in re.finditer(r"\b(?:if|while) \(", line):
        depth = 1
        for end in range(m.end(), len(line)):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            if depth == 0:
                yield m.end(), end, "!(" + line[m.end():end] + ")"
                break
    for m in re.finditer(r"!(?![=\s])", line):
        yield m.start(), m.end(), ""


def errors(line):
    for m in re.finditer(r"(?<=return )MTAN_ERR_\w+(?=;)", line):
        yield m.start(), m.end(), "MTAN_OK"


def is_declaration(line):
    return re.match(r"\s*(?:(?:static|const|struct|unsigned) )*[a-z_]\w*(?: const)? \**(?:const )?[a-z_]\w*(?:\[.*?\])*(?: =|,|;)", line)


def statements(line):
    keyword = re.match(r"\s*(?:return|break|continue|case|default|else|do|\}|\w+:)", line)
    if not keyword and line.count("(") == line.count(")") and re.match(r"\s*[\w*(+-].*;$", line):
        start = len(line) - len(line.lstrip())
        yield start, len(line), ";"


def faults(line):
    line = line.rstrip()
    declared = is_declaration(line) and not line.lstrip().startswith("return ")
    if declared and " = " not in line:
        return
    found = [*operators(line), *constants(line), *conditions(line), *errors(line)]
    yield from ((s, e, n) for s, e, n in found if not declared or s > line.index(" = ") + 2)
    if not declared:
        yield from statements(line)


def starts_here(code, at):
    """Does a statement start here? A line that continues another one cannot be taken out."""
    return re.search(r"[{};:)]\s*$|\belse\s*$", code[max(0, at - 2000):at])


def all_mutants(text, compiler):
    code, kept = masked(text), compiled_lines(compiler)
    found = []
    for f in functions(code):
        at, number = f.start, 1 + code.count("\n", 0, f.start)
        for line in code[f.start:f.end].split("\n"):
            for start, end, new in faults(line) if number in kept else ():
                if new.startswith("!("):  # strings are blank in the code
                    new = "!(" + text[at + start:at + end] + ")"
                if new != ";" or starts_here(code, at):
                    found.append(Mutant(text, f, at + start, at + end, new))
            at, number = at + len(line) + 1, number + 1
    return found


def choose(mutants, count, seed):
    """The first mutants by a number drawn from seed, function and line: the same mutants wherever the line is."""
    times, ranks = {}, []
    for i, mutant in enumerate(mutants):
        times[mutant.key] = times.get(mutant.key, 0) + 1
        ranks.append((hashlib.sha256("\n".join([seed, *mutant.key, str(times[mutant.key])]).encode()).digest(), i))
    return [mutants[i] for _, i in sorted(ranks)[:count]]


# ---- one program of all mutants ----

def with_mutants(text, numbered):
    """The source in which mutant_chosen selects the body of a function that runs, the lines [first, last] of each
    mutant in it, and the functions by number."""
    by_function = {}
    for number, mutant in numbered:
        by_function.setdefault(mutant.function, []).append((number, mutant))
    names = sorted(by_function, key=lambda f: f.start)
    out, places, at = ["extern int mutant_chosen; extern char mutant_reached[];\n#line 1\n"], {}, 0
    line = 1

    def put(piece):
        nonlocal line
        out.append(piece)
        line += piece.count("\n")

    for i, f in enumerate(names):
        put(text[at:f.start] + f"\nmutant_reached[{i}] = 1;\n")
        for number, mutant in by_function[f]:
            first = line
            put(f"if (mutant_chosen == {number}) {{" + mutant.apply(text, f.start, f.end) + "} else\n")
            places[number] = (first, line)
        put("{" + text[f.start:f.end] + "}\n")
        at = f.end
    put(text[at:])
    return "".join(out), places, names


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Program:
    """The tests, linked with an mtan.c that contains all these mutants. `numbered` are those that compile: [(number,
    mutant)]."""

    def __init__(self, name, text, mutants, compiler, linker, libraries):
        base = f"{FOLDER}/{name}"
        self.path = base + "-tests"
        self.numbered = list(enumerate(mutants, 1))
        while True:
            source, places, self.functions = with_mutants(text, self.numbered)
            write(base + ".c", source)
            done = subprocess.run([*compiler, base + ".c", "-o", base + ".o"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
            lines = [int(n) for n in re.findall(r"\.c:(\d+):\d+: error", done.stderr)]
            bad = {n for n, (first, last) in places.items() if any(first <= x < last for x in lines)}
            if not bad:
                sys.exit("mtan: the mutants do not compile:\n" + done.stderr)
            self.numbered = [(n, m) for n, m in self.numbered if n not in bad]
        write(FOLDER + "/choose.c", CHOOSER % (len(self.functions) + 1))
        subprocess.run([*linker, FOLDER + "/choose.c", base + ".o", *libraries, "-o", self.path], check=True)

    def run(self, test, seconds, **environment):
        """The test's output, or None if it failed. CPU time is limited, because other work on the machine must not
        count; the wall clock stops tests that wait forever."""
        limits = f"ulimit -c 0; ulimit -t {math.ceil(seconds)}; exec \"$@\""
        words = ["sh", "-c", limits, "sh", self.path, "-e", "-s", test.suite, "-t", test.name]
        try:
            done = subprocess.run(words, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  timeout=60 + 30 * seconds, check=False)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    def tests(self):
        """All tests of tests/library."""
        suites, suite, found = set(), None, {}
        for name in os.listdir("tests/library"):
            if name.startswith("test_"):
                with open("tests/library/" + name, encoding="utf-8") as f:
                    suites.update(re.findall(r"^SUITE\((\w+)\)", f.read(), re.M))
        for line in subprocess.run([self.path, "-l"], check=True, capture_output=True, text=True).stdout.split("\n"):
            if line.startswith("* Suite "):
                suite = line[8:].rstrip(":")
            elif line.startswith("  ") and suite in suites:
                found[suite, line.strip()] = Test(suite, line.strip())
        return list(found.values())

    def measure(self, test):
        """Records the test's behaviour without a fault. False if it fails or takes too long."""
        file, before = FOLDER + "/reached", resource.getrusage(resource.RUSAGE_CHILDREN)
        output = self.run(test, SLOWEST, MTAN_MUTANT_REACHED=file)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        test.seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if output and re.search("Pass: [1-9]", output):  # a skipped test tests nothing
            with open(file, encoding="utf-8") as f:
                test.reached = {self.functions[int(n)] for n in f.read().split()}
        return output is not None

    def killer(self, number, mutant, tests, slower=1):
        """The first test that fails with the mutant but not without it, or None."""
        for test in tests:
            seconds = slower * (2 + 4 * test.seconds)
            if mutant.function in test.reached and self.run(test, seconds, MTAN_MUTANT=str(number)) is None and \
                    (slower == 1 or self.run(test, seconds) is not None):
                return test
        return None


class Test:
    def __init__(self, suite, name):
        self.suite, self.name = suite, name
        self.seconds, self.reached = 0.0, set()


# ---- survivors ----

def object_of(compiler, text, path):
    subprocess.run([*compiler, "-x", "c", "-", "-o", path], input=text.encode(), check=True)
    return path


def same_object(compiler, text, mutant, number):
    path = object_of(compiler, mutant.apply(text, 0, len(text)), f"{FOLDER}/{number}.o")
    same = filecmp.cmp(path, FOLDER + "/original.o", shallow=False)
    os.remove(path)
    return same


def read_judged(path):
    """{key: reason} of a file of paragraphs"""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"^#.*\n", "", f.read(), flags=re.M)
    entries = {}
    for paragraph in filter(None, (p.strip() for p in text.split("\n\n"))):
        lines = paragraph.split("\n")
        if len(lines) < 3 or lines[1][:2] != "- " or lines[2][:2] != "+ ":
            sys.exit(f"mtan: {path}: not a function, a line with - and one with +:\n{paragraph}")
        entries[lines[0], lines[1][2:], lines[2][2:]] = " ".join(lines[3:])
    return entries


def check_judged(judged, mutants, killed):
    """The number of wrong entries."""
    known, dead, wrong = {m.key for m in mutants}, {m.key for m in killed}, 0
    lines = {key[:2] for key in known}
    for key, reason in judged.items():
        what = ("has no reason" if not reason else "is of a line that has gone" if key[:2] not in lines else
                "is no fault that is made here" if key not in known else "is killed" if key in dead else None)
        if what:
            wrong += 1
            print(f"FAILED  an entry of {JUDGED} {what}:\n{key[0]}\n- {key[1]}\n+ {key[2]}\n")
    return wrong


class Sweep:
    """The mutants of one run, and their outcomes."""

    def __init__(self, text, judged, jobs, words):
        self.text, self.judged, self.jobs = text, judged, jobs
        self.compiler, self.linker, self.libraries, self.sanitizer = words
        self.killed, self.survived, self.same = [], [], []

    def tests(self, program):
        tests = program.tests()
        good = sorted((t for t in tests if program.measure(t)), key=lambda t: t.seconds)
        for t in sorted(set(tests) - set(good), key=lambda t: t.name):
            print(f"left out: {t.name} fails without a fault, or takes more than {SLOWEST} s")
        print(f"{len(good)} tests, {sum(t.seconds for t in good):.0f} s of CPU time", flush=True)
        return good

    def first_round(self, program, tests, log):
        object_of(self.compiler, self.text, FOLDER + "/original.o")

        def fate(pair):
            number, mutant = pair
            test = program.killer(number, mutant, tests)
            return mutant, test, test is None and same_object(self.compiler, self.text, mutant, number)

        with ThreadPoolExecutor(self.jobs) as pool:
            for mutant, test, identical in pool.map(fate, program.numbered):
                (self.killed if test else self.same if identical else self.survived).append(mutant)
                print(f"{mutant}{test.name if test else 'the same object' if identical else 'SURVIVED'}\n", file=log, flush=True)

    def second_round(self, tests, log):
        """Finds what gcc-sanitize would find: only mtan.c and the tests' guards have the sanitizers, for survivors that
        are not judged."""
        tried = [m for m in self.survived if m.key not in self.judged]
        if not tried:
            return
        guards = ["-I.", "-Itests/support", '-DMTAN_GOLDEN_DIR="golden"', "tests/support/check.c"]  # poisons the zones around a block
        program = Program("sanitized", self.text, tried, [*self.compiler, *self.sanitizer],
                          [*self.linker, *self.sanitizer, *guards], self.libraries)
        with ThreadPoolExecutor(self.jobs) as pool:
            for mutant, test in pool.map(lambda p: (p[1], program.killer(*p, tests, slower=10)), program.numbered):
                if test:
                    self.survived.remove(mutant)
                    self.killed.append(mutant)
                    print(f"{mutant}{test.name}, sanitized\n", file=log, flush=True)

    def report(self, mutants, share_wanted):
        """Prints the report, and returns the number of things that are wrong."""
        unjudged = [m for m in self.survived if m.key not in self.judged]
        for mutant in self.survived:
            print(("FAILED  " if mutant in unjudged else "judged  ") + str(mutant))
        failed = len(unjudged) + check_judged(self.judged, mutants, self.killed)
        counted = len(self.killed) + len(self.survived)
        share = len(self.killed) / max(counted, 1)
        print(f"{counted} mutants count ({len(self.same)} have the object of {SOURCE}): {len(self.killed)} killed, {100 * share:.1f} %; "
              f"{len(self.survived)} survived, {len(self.survived) - len(unjudged)} of them judged")
        if share < share_wanted:
            failed += 1
            print(f"FAILED  fewer than {100 * share_wanted:.0f} % are killed")
        print(f"{len(self.killed)} passed, {failed} failed, {len(self.survived) - len(unjudged)} skipped")
        return failed


def main():
    count, seed, jobs, again = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "again"
    os.makedirs(FOLDER, exist_ok=True)
    with open(SOURCE, encoding="utf-8") as f:
        text = f.read()
    sweep = Sweep(text, read_judged(JUDGED), jobs, [words.split() for words in sys.argv[5:9]])
    mutants = all_mutants(text, sweep.compiler)
    last = read_judged(SURVIVORS) if again else {}
    picked = [m for m in mutants if m.key in last and m.key not in sweep.judged] if again else choose(mutants, count, seed)
    program = Program("mutants", text, picked, sweep.compiler, sweep.linker, sweep.libraries)
    print(f"{len(mutants)} mutants can be made; {len(picked)} are, {len(picked) - len(program.numbered)} of them do not compile", flush=True)
    tests = sweep.tests(program)
    with open(FOLDER + "/log", "w", encoding="utf-8") as log:
        sweep.first_round(program, tests, log)
        sweep.second_round(tests, log)
    write(SURVIVORS, "\n".join(map(str, sweep.survived)))
    return sweep.report(mutants, 0 if again else SHARE) > 0


sys.exit(main())
