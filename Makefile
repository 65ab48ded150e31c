# mtan: `make help` lists the targets. Everything is built under build/, one folder per configuration. What needs other compilers,
# emulators, GPUs or Python stands in tools/maintain.mk.

# make always has a CC of its own ("cc"), so `CC ?= gcc` would do nothing: ask where it comes from.
has = $(shell command -v $(1) >/dev/null 2>&1 && echo yes)
ifeq ($(origin CC),default)
CC := $(if $(call has,gcc),gcc,cc)
endif
ifeq ($(origin CXX),default)
CXX := $(if $(call has,g++),g++,c++)
endif
CFLAGS ?= -O2
JOBS ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

HAS_GCC := $(call has,gcc)
HAS_CLANG := $(call has,clang)
HAS_CXX := $(call has,$(CXX))
HAS_UBSAN = $(if $(HAS_CLANG),$(shell echo 'int main(void) { return 0; }' | clang -fsanitize=undefined -x c - -o /dev/null 2>/dev/null && echo yes))
HAS_TSAN := $(findstring /,$(if $(HAS_GCC),$(shell gcc -print-file-name=libtsan.so)))
HAS_ZLIB := $(shell printf '\043include <zlib.h>\nint main(void) { return !zlibVersion(); }\n' | $(CC) -x c - -lz -o /dev/null 2>/dev/null && echo yes)
HAS_FMA := $(shell grep -q '^flags.* fma ' /proc/cpuinfo 2>/dev/null && echo yes)
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)

WARN := -pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes
ALWAYS := -std=c99 $(WARN) -ffp-contract=off -I. -Itests/support -isystem build/deps -DMTAN_GOLDEN_DIR='"golden"' -D_FILE_OFFSET_BITS=64 \
	-MMD -MP $(if $(HAS_ZLIB),-DMTAN_ZLIB)
LIBS := $(if $(HAS_ZLIB),-lz) -lm -pthread $(if $(findstring Linux,$(shell uname -s)),-ldl)
SAN := -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=address,undefined

# ---- Configurations ----------------------------------------------------------------------------------------------
# release and double serve the tools, pic the libraries; those of TESTS are what `make test` builds and runs, with warnings as errors;
# bare is a small one that `make anywhere` runs. Of a configuration c
#   c.CC         is the compiler; else the first word of its name, or CC
#   c.FLAGS      are the flags of every file, c.LIBRARY those of mtan.c alone
#   c.BACKENDS   are the files of simd/ that are linked
#   c.ARGS       are given to its tests; c.SKIP says why it cannot run on this machine, empty when it can
#   c.SUITE_C, c.SHARED_C, c.LIBS   replace SUITE_C, SHARED_C and LIBS

TESTS := gcc-float gcc-fma gcc-double gcc-sanitize gcc-tsan clang-float clang-double clang-ubsan
CONFIGURATIONS = $(sort release double pic bare $(TESTS))
STRICT := bare $(TESTS) # warnings are errors

release.FLAGS = $(CFLAGS)
double.FLAGS = $(CFLAGS) -DMTAN_DOUBLE
pic.FLAGS = $(CFLAGS) -fPIC
gcc-float.FLAGS := -O2
gcc-fma.FLAGS := -O2 -DMTAN_TESTS_LIBRARY
gcc-fma.LIBRARY := -mfma
gcc-fma.SKIP := $(if $(HAS_FMA),,this CPU has no FMA)
gcc-double.FLAGS := -O2 -DMTAN_DOUBLE
gcc-sanitize.FLAGS := -O1 $(SAN)
gcc-tsan.FLAGS := -O2 -g -fsanitize=thread -DMTAN_TESTS_THREADED
gcc-tsan.ARGS := -x loss_falls # hundreds of steps on one thread
gcc-tsan.SKIP := $(if $(HAS_TSAN),,no ThreadSanitizer)
clang-float.FLAGS := -O2
clang-double.FLAGS := -O2 -DMTAN_DOUBLE -DMTAN_TESTS_LIBRARY
# It knows kinds of undefined behaviour that gcc-sanitize does not: arithmetic on null pointers, floats beyond an integer's range.
clang-ubsan.FLAGS := -O1 -g -fno-sanitize-recover=all -fsanitize=undefined
clang-ubsan.SKIP = $(if $(HAS_UBSAN),,no UndefinedBehaviorSanitizer)
bare.FLAGS := -O1 -DMTAN_TESTS_BARE

# ---- Instruction sets: those of this machine, and the flags of each file of simd/. `make SIMD= ...` leaves them out. ----

SIMD := $(if $(filter x86_64%,$(MACHINE)),scalar_fma avx2 avx512)$(if $(filter aarch64% arm64%,$(MACHINE)),neon)
scalar_fma.SIMD := -mfma
avx2.SIMD := -mavx2 -mfma
avx512.SIMD := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma
emulated512.SIMD := -mavx2 -mfma -Wno-psabi
# The double build has the scalar table alone. The width of AVX-512 is tested through SIMDe's emulation too.
release.BACKENDS := $(SIMD)
pic.BACKENDS := $(SIMD)
gcc-float.BACKENDS := $(SIMD) $(if $(filter avx2,$(SIMD)),emulated512)
gcc-fma.BACKENDS := $(filter-out avx512,$(SIMD))
gcc-sanitize.BACKENDS := $(filter-out avx512,$(SIMD))
clang-float.BACKENDS := $(filter-out avx512,$(SIMD))
clang-ubsan.BACKENDS := $(filter-out avx512,$(SIMD))
bare.BACKENDS := $(gcc-float.BACKENDS)

# ---- Sources -------------------------------------------------------------------------------------------------------

PROGRAMS := $(wildcard tools/check/*.c tools/bench/*.c tools/edge/*.c tools/demo/*.c) # each a program of its own
SUITE_C := tests/main.c $(wildcard tests/*/test_*.c)
# The host side of the CUDA backend is in every program, as `mtan bench` counts what it would launch; what looks for the machine's
# driver is where there is a GPU to be found, or a test of it. Kernels are in float: programs in double have none of it.
CUDA_C := platform/cuda/cuda.c platform/cuda/backend.c
CUDA_LOAD_C := platform/cuda/load.c
SHARED_C := $(filter-out tools/mtan/command/main.c platform/ranks.c $(wildcard tests/library/*_program.c tests/library/bits_dump.c tests/*/test_*.c),\
	$(wildcard tests/support/*.c tests/library/*.c tests/cuda/*.c tools/data/*.c tools/baselines/*.c tools/mtan/*/*.c platform/*.c)) $(CUDA_C) # serves tests and tools
# What MTAN_TESTS_LIBRARY leaves: the library with its suites, without the tools
LIBRARY_SUITE_C := tests/main.c tests/cuda/test_cuda.c $(wildcard tests/library/test_*.c)
LIBRARY_SHARED_C := $(filter-out tools/% tests/support/baseline% tests/support/command_line% $(CUDA_C),$(SHARED_C)) tools/data/generators.c
IN_DOUBLE_C := $(filter-out $(CUDA_C) tools/mtan/paper/cost.c,$(SHARED_C))
double.SHARED_C := $(IN_DOUBLE_C)
gcc-double.SHARED_C := $(IN_DOUBLE_C)
# The tools know nothing of fused multiply-add, and gcc-double and clang-float have them in double and by clang.
gcc-fma.SUITE_C := $(LIBRARY_SUITE_C)
gcc-fma.SHARED_C := $(LIBRARY_SHARED_C)
clang-double.SUITE_C := $(LIBRARY_SUITE_C)
clang-double.SHARED_C := $(LIBRARY_SHARED_C)
bare.SUITE_C := tests/main.c tests/library/test_check.c tests/library/test_simd.c $(patsubst %,tests/data/test_%.c,array own prep)
bare.SHARED_C := $(filter tools/data/% platform/cpu.c $(patsubst %,tests/support/%.c,check ladder kernel% small tiny_model caller),$(SHARED_C))

BITS_C := tests/library/bits_dump.c $(patsubst %,tests/support/%.c,ladder check tiny_model kernel_cases small caller)

.DEFAULT_GOAL := help
include tools/maintain.mk

# ---- Rules, once per configuration -----------------------------------------------------------------------------

upper = $(shell echo $(1) | tr a-z A-Z)
compiler = $(or $($(1).CC),$(filter gcc clang,$(firstword $(subst -, ,$(1)))),$(CC))
flags = $($(1).FLAGS) $(if $(filter $(1),$(STRICT)),-Werror) $(foreach b,$($(1).BACKENDS),-DMTAN_WITH_$(call upper,$(b)))
objects = $(patsubst %.c,build/$(1)/%.o,$(2))
define rules
$(1).flags := $(flags)
$(1).suites := $(call objects,$(1),$(or $($(1).SUITE_C),$(SUITE_C)))
$(1).shared := $(call objects,$(1),$(or $($(1).SHARED_C),$(SHARED_C)))
$(1).vectors := $($(1).BACKENDS:%=build/$(1)/simd/mtan_%.o)
build/$(1)/%.o: %.c Makefile tools/maintain.mk
	@mkdir -p $$(@D)
	@$(compiler) $$(ALWAYS) $$($(1).flags) $$(if $$(filter mtan,$$*),$($(1).LIBRARY)) $$($$(*:simd/mtan_%=%).SIMD) -c $$< -o $$@
$$($(1).suites): | build/deps/greatest.h
$$($(1).vectors): | build/deps/simde
$$($(1).suites) $$($(1).shared) $(call objects,$(1),$(PROGRAMS) tools/mtan/command/main.c): | build/deps/stb
build/$(1)/shared.a: $$($(1).shared) build/$(1)/mtan.o $$($(1).vectors)
	@rm -f $$@ && $$(AR) rcs $$@ $$^
build/$(1)/run-tests: $$($(1).suites) $($(1).SHIM) build/$(1)/shared.a
	@$(compiler) $$($(1).flags) $$^ $(or $($(1).LIBS),$(LIBS)) -o $$@
$(foreach p,$(PROGRAMS:%.c=%),
build/$(1)/$(notdir $(p)): build/$(1)/$(p).o build/$(1)/shared.a
	@$(compiler) $$($(1).flags) $$^ $$(LIBS) -o $$@)
endef
$(foreach c,$(CONFIGURATIONS),$(eval $(call rules,$(c))))
# Results tell the commit of the program that made them, with a + where files were changed since.
COMMIT := $(shell git describe --always --exclude='*' --abbrev=10 --dirty=+ 2>/dev/null)
build/commit: always
	@mkdir -p $(@D) && echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
$(CONFIGURATIONS:%=build/%/tools/mtan/paper/origin.o): ALWAYS += -DMTAN_COMMIT='"$(COMMIT)"'
$(CONFIGURATIONS:%=build/%/tools/mtan/paper/origin.o): build/commit
always:
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find build -name '*.d' 2>/dev/null)

build/deps/greatest.h build/deps/simde build/deps/stb:
	@tools/deps.sh $(basename $(@F))

# ---- The library as it is installed: see platform/README.md ------------------------------------------------------

VERSION := $(shell sed -n 's/^.define MTAN_VERSION "\(.*\)"/\1/p' mtan.h)
MAJOR := $(firstword $(subst ., ,$(VERSION)))
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
LIBRARY_O := build/pic/mtan.o build/pic/platform/cpu.o $(pic.vectors)
ifeq ($(shell uname -s),Darwin)
SHARED := libmtan.$(VERSION).dylib
SONAME := libmtan.$(MAJOR).dylib
LINKNAME := libmtan.dylib
SHARED_FLAGS = -dynamiclib -install_name @rpath/$(SONAME) -Wl,-exported_symbol,'_mtan_*'
else
SHARED := libmtan.so.$(VERSION)
SONAME := libmtan.so.$(MAJOR)
LINKNAME := libmtan.so
SHARED_FLAGS = -shared -Wl,-soname,$(SONAME) -Wl,--version-script=platform/install/libmtan.map -Wl,-z,defs
endif

# ---- Targets ---------------------------------------------------------------------------------------------------

help: found ## this list
	@echo; $(list) Makefile; echo; echo "For maintainers (tools/maintain.mk):"; $(list) tools/maintain.mk
list = awk '/^[a-z-]+:[^\#]*\#\# / { name = text = $$0; sub(/:.*/, "", name); sub(/^[^\#]*\#\# /, "", text); printf "%-13s %s\n", name, text }'

found: # one line per optional thing
	@say() { if [ -n "$$2" ]; then echo "found    $$1"; else echo "missing  $$1: $$3"; fi; }; \
	say gcc "$(HAS_GCC)" "its configurations are skipped"; \
	say clang "$(HAS_CLANG)" "its configurations and make fuzz are skipped"; \
	say "$(CXX)" "$(HAS_CXX)" "make cxx is skipped"; \
	say zlib "$(HAS_ZLIB)" "compressed files must be unpacked first"; \
	say "FMA in this CPU" "$(HAS_FMA)" "gcc-fma is skipped"; \
	say mpicc "$(HAS_MPI)" "make mpi is skipped"; \
	say nvcc "$(NVCC)" "make cuda cannot be made; the kernels are tested without it"; \
	say "gcc's ThreadSanitizer" "$(HAS_TSAN)" "gcc-tsan is skipped"; \
	say "clang's UndefinedBehaviorSanitizer" "$(HAS_UBSAN)" "clang-ubsan is skipped"; \
	for name in greatest simde stb; do \
		[ ! -f build/deps/$$name.stand-in ] || say $$name "" "a stand-in of our own serves; make deps looks again"; done

lib: build/libmtan.a build/$(SHARED) ## the library with this machine's instruction sets: build/libmtan.a and the shared one
	@echo $^
build/libmtan.a: $(LIBRARY_O)
	@rm -f $@ && $(AR) rcs $@ $^
build/$(SHARED): $(LIBRARY_O) platform/install/libmtan.map
	@$(CC) $(pic.flags) $(LDFLAGS) $(SHARED_FLAGS) $(LIBRARY_O) -o $@

lib-double: build/libmtan_double.a ## the library in double, scalar code alone, as build/libmtan_double.a: compile with -DMTAN_DOUBLE, link -lm
build/libmtan_double.a: build/double/mtan.o
	@rm -f $@ && $(AR) rcs $@ $^ && echo $@

mtan: build/mtan ## the command: train, eval, predict, interpolate, report, ... as build/mtan
	@echo build/mtan
build/mtan: build/release/tools/mtan/command/main.o build/release/shared.a
	@$(CC) $(release.flags) $^ $(LIBS) -o $@

install: build/mtan build/libmtan.a build/$(SHARED) ## command, headers, libraries, mtan.pc, CMake package, man page, completion (PREFIX, DESTDIR, BINDIR, LIBDIR, INCLUDEDIR, MANDIR)
	@$(installing) install
uninstall: ## remove what make install has written, given the same folders
	@$(installing) uninstall
installing = DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' INCLUDEDIR='$(INCLUDEDIR)' MANDIR='$(MANDIR)' \
	VERSION=$(VERSION) SHARED=$(SHARED) SONAME=$(SONAME) LINKNAME=$(LINKNAME) platform/install/install.sh

demo: build/release/demo ## train on made-up patients and compare with what people would do otherwise (half a minute)
	@build/release/demo $(ARGS)

CHECKS := suites layers departures fresh vendored readme anywhere installed symbols cxx bits manual
symbols.SKIP := $(if $(findstring Darwin,$(shell uname -s)),nm and size print ELF files otherwise)
readme.SKIP := $(if $(HAS_FMA),,the README has the numbers of CPUs with fused multiply-add)
cxx.SKIP := $(if $(HAS_CXX),,no C++ compiler)
manual.SKIP := $(if $(call has,mandoc),,no mandoc)
skip = $(strip $(if $(call has,$(call compiler,$(1))),,no $(call compiler,$(1))) $($(1).SKIP))
test: found ## build and run every configuration, then the checks below; the sum stands on the last line
	@MAKE='$(MAKE)' tools/check/run_tests.sh all $(JOBS) $(foreach t,$(TESTS) $(CHECKS),'$(t):$(call skip,$(t))')

$(sort test-bare $(TESTS:%=test-%)): test-%: build/%/run-tests
	@tools/check/run_tests.sh one $* build/$*/run-tests -v $($*.ARGS)
# A check makes what it needs in a make of its own; what two of them need is made once, before.
test-manual test-installed: build/mtan
test-installed: build/libmtan.a build/$(SHARED)
test-cxx: build/release/mtan.o
$(CHECKS:%=test-%): test-%:
	@tools/check/run_tests.sh check $* $(MAKE) --no-print-directory $*

suites: ## check that every suite of tests/ is in the list that runs, and that no test takes NaN for near
	@! grep -n ASSERT_IN_RANGE tests/*/test_*.c
	@for s in $$(sed -n 's/^SUITE(\([a-z0-9_]*\)).*/\1/p' tests/*/test_*.c); do \
		grep -q "^X($$s)" tests/suites.h || { echo "mtan: $$s is not in tests/suites.h"; bad=1; }; done; test -z "$$bad"

layers: ## no folder of the command includes from one above it
	@tools/check/layers.sh

departures: ## every departure that a comment cites is explained in golden/departures.md, none is cited where users read
	@tools/check/departures.sh

fresh: ## on a fresh machine what is fetched comes before what includes it
	@for t in demo mtan bench; do $(MAKE) --no-print-directory -Bns $$t 2>/dev/null | awk -v target=$$t \
		'/deps.sh stb/ { fetched = 1 } / -c tools\// && !fetched { print "mtan: make " target " compiles before it fetches stb"; exit 1 } \
		END { if (!fetched) exit 1 }' || exit 1; done

vendored: $(if $(SIMD),build/deps/simde) ## the files in an empty folder, with the program of the manual, in one command line per backend
	@tools/check/vendored.sh $(CC) $(if $(filter avx2,$(SIMD)),"avx2:$(avx2.SIMD):avx2" "avx512:$(avx512.SIMD):avx512f")

installed: build/mtan build/libmtan.a build/$(SHARED) ## programs that use the installed library: pkg-config, find_package, add_subdirectory, FetchContent
	@MAKE='$(MAKE)' CC='$(CC)' tools/check/installed.sh

readme: build/release/demo build/mtan ## the README: its size, its links, its program, and every transcript run and compared
	@tools/check/readme.sh build/release/demo

anywhere: ## make demo and a small make test in a fresh copy, with no package manager, no network and none of the dependencies
	@MAKE='$(MAKE)' JOBS=$(JOBS) tools/check/anywhere.sh

symbols: ## the library: no global name without mtan_, nothing undefined but mem*, no writable data; the tools: no exit in a module
	@tools/check/symbols.sh $(sort $(CC) $(if $(HAS_CLANG),clang))

cxx: build/release/mtan.o ## the header, its internals too, and a program that uses it, as C++
	@echo '#include "mtan.h"' | $(CXX) -std=c++11 -pedantic -Wall -Wextra -Werror -I. -DMTAN_INTERNALS -fsyntax-only -x c++ -
	@$(CXX) -std=c++11 -pedantic -Wall -Wextra -Werror -I. tests/library/cxx_program.cpp build/release/mtan.o -o build/cxx_program
	@build/cxx_program

manual: build/mtan ## the man page that `mtan man` prints, as mandoc sees it
	@build/mtan man | mandoc -T lint

# One program linked with mtan.c by each compiler, at each level, with and without fused multiply-add: COMPILER-LEVEL-CLASS.
# No other flag: the source alone has to keep contraction off. The test takes the two levels that differ most, as compiling
# them all takes a minute. The rest of the program is each compiler's own too: they differ in the order in which they evaluate
# arguments, and so would the cases if they depended on it.
LEVELS ?= O0 O1 O2 O3
test-bits: export LEVELS := O0 O3
BITS = $(foreach c,$(if $(HAS_GCC),gcc) $(if $(HAS_CLANG),clang),$(foreach l,$(LEVELS),$(foreach k,unfused $(if $(HAS_FMA),fused),$c-$l-$k)))
build/bits/%.o: mtan.c mtan.h Makefile
	@mkdir -p $(@D)
	@$(word 1,$(subst -, ,$*)) -I. -$(word 2,$(subst -, ,$*)) $(if $(findstring -fused,$*),-mfma) -c $< -o $@
define bits_of # compiler
build/bits/$(1)-%.txt: build/bits/$(1)-%.o $(call objects,$(1)-float,$(BITS_C))
	@$(1) $$(filter %.o,$$^) -lm -o build/bits/$(1)-$$* && build/bits/$(1)-$$* >$$@
endef
$(foreach c,gcc clang,$(eval $(call bits_of,$(c))))
bits: ## the same bits from every compiler and level, for fused and unfused builds (LEVELS="O0 O1 O2 O3")
	@$(MAKE) -s --no-print-directory $(BITS:%=build/bits/%.txt)
	@tools/check/bits.sh $(BITS:%=build/bits/%.txt)

agreement: build/release/agreement build/double/agreement ## differences from the reference, per case and tensor (ARGS=--worst: per case)
	@build/double/agreement $(ARGS); double=$$?; build/release/agreement $(ARGS) && exit $$double

sizes: build/release/sizes ## bytes that each named model needs for weights, prediction and training
	@build/release/sizes $(ARGS)

bench: build/release/bench ## speed, memory and growth on this machine (ARGS="--help" lists the options)
	@build/release/bench $(ARGS)

deps: ## fetch all dependencies into build/deps (targets fetch what they need by themselves)
	@tools/deps.sh

clean: ## remove build/, but not the fetched dependencies
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} + 2>/dev/null || :

.PHONY: always help found lib lib-double mtan install uninstall demo test $(CHECKS) agreement sizes bench deps clean test-bare $(TESTS:%=test-%) $(CHECKS:%=test-%)
