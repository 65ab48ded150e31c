# mtan: `make help` lists the targets. Everything is built under build/, one folder per configuration.

# make always has a CC of its own ("cc"), so `CC ?= gcc` would do nothing: ask where it comes from.
ifeq ($(origin CC),default)
CC := $(shell command -v gcc >/dev/null 2>&1 && echo gcc || echo cc)
endif
ifeq ($(origin CXX),default)
CXX := $(shell command -v g++ >/dev/null 2>&1 && echo g++ || echo c++)
endif
PYTHON ?= python3
CFLAGS ?= -O2
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

WARN := -pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes
ALWAYS := -std=c99 $(WARN) -ffp-contract=off -I. -Itests/support -isystem build/deps -DMTAN_GOLDEN_DIR='"golden"' -D_FILE_OFFSET_BITS=64 -MMD -MP
LIBS = $(if $(HAS_ZLIB),-lz) -lm -pthread $(DL)
SAN := -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=address,undefined

has = $(shell command -v $(1) >/dev/null 2>&1 && echo yes)
HAS_GCC := $(call has,gcc)
HAS_CLANG := $(call has,clang)
HAS_CXX := $(call has,$(CXX))
HAS_MPI := $(call has,mpicc)
HAS_TSAN := $(findstring /,$(if $(HAS_GCC),$(shell gcc -print-file-name=libtsan.so)))
HAS_ZLIB := $(shell printf '\043include <zlib.h>\nint main(void) { return !zlibVersion(); }\n' | $(CC) -x c - -lz -o /dev/null 2>/dev/null && echo yes)
ALWAYS += $(if $(HAS_ZLIB),-DMTAN_ZLIB)
DL := $(if $(findstring Linux,$(shell uname -s)),-ldl)
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))
HAS_FMA := $(shell grep -qw fma /proc/cpuinfo 2>/dev/null && echo yes)

# ---- Configurations: compiler, flags of every file, flags of the library alone ---------------------------------
# release and double serve the tools; the others are what `make test` builds and runs, with warnings as errors.

release.CC := $(CC)
release.FLAGS = $(CFLAGS)
double.CC := $(CC)
double.FLAGS = $(CFLAGS) -DMTAN_DOUBLE

gcc-float.FLAGS := -O2
gcc-fma.FLAGS := -O2
gcc-fma.LIBRARY := -mfma
gcc-double.FLAGS := -O2 -DMTAN_DOUBLE
gcc-sanitize.FLAGS := -O1 $(SAN)
gcc-tsan.FLAGS := -O2 -g -fsanitize=thread -DMTAN_TESTS_THREADED
gcc-tsan.ARGS := -x loss_falls # hundreds of steps on one thread
clang-float.FLAGS := -O2
clang-double.FLAGS := -O2 -DMTAN_DOUBLE

# `make edge`: other CPUs, emulated, and other C libraries. Cross compilers have no zlib. All CPUs fuse multiply and add but
# armv7 (VFPv3), of which only the bits are compared. C99 on s390x would evaluate float as double.
EDGE := aarch64 riscv64 armhf armv7 s390x musl windows
aarch64.CC := aarch64-linux-gnu-gcc
riscv64.CC := riscv64-linux-gnu-gcc
armhf.CC := arm-linux-gnueabihf-gcc
armhf.FLAGS := -mfpu=vfpv4 -mfloat-abi=hard
armv7.CC := $(armhf.CC)
armv7.FLAGS := -mfpu=vfpv3-d16 -mfloat-abi=hard
s390x.CC := s390x-linux-gnu-gcc
s390x.FLAGS := -fexcess-precision=fast
# Their isnan of a double has a branch for float in it, which warns.
musl.CC := musl-gcc
musl.FLAGS := -Wno-float-conversion
windows.CC := x86_64-w64-mingw32-gcc-posix
windows.FLAGS := -Wno-float-conversion -DMTAN_TESTS_LIBRARY -D__USE_MINGW_ANSI_STDIO=1 # printf as in C99
$(foreach t,$(EDGE),$(eval $(t).FLAGS += -O2 -Werror -static -UMTAN_ZLIB)$(eval $(t).LIBS := -lm -pthread))

# `make cuda`: the command for NVIDIA GPUs.
cuda.CC := $(CC)
cuda.FLAGS = $(CFLAGS) -DMTAN_WITH_CUDA

# `make mpi`: the command for several processes.
mpi.CC := mpicc
mpi.FLAGS = $(CFLAGS) -DMTAN_MPI

GCC_TESTS := gcc-float gcc-fma gcc-double gcc-sanitize gcc-tsan
CLANG_TESTS := clang-float clang-double
TESTS := $(GCC_TESTS) $(CLANG_TESTS)
CHECKS := suites departures fresh vendored symbols cxx bits manual

$(foreach t,$(GCC_TESTS),$(eval $(t).CC := gcc))
$(foreach t,$(CLANG_TESTS),$(eval $(t).CC := clang))
$(foreach t,$(TESTS),$(eval $(t).FLAGS += -Werror))

# Why a configuration cannot run on this machine; empty when it can.
$(foreach t,$(GCC_TESTS),$(eval $(t).SKIP := $(if $(HAS_GCC),,no gcc)))
$(foreach t,$(CLANG_TESTS),$(eval $(t).SKIP := $(if $(HAS_CLANG),,no clang)))
gcc-fma.SKIP += $(if $(HAS_FMA),,this CPU has no FMA)
gcc-tsan.SKIP += $(if $(HAS_TSAN),,no ThreadSanitizer)
cxx.SKIP := $(if $(HAS_CXX),,no C++ compiler)
manual.SKIP := $(if $(call has,mandoc),,no mandoc)
RUN := $(foreach t,$(TESTS) $(CHECKS),$(if $(strip $($(t).SKIP)),,$(t)))

# ---- Vector backends: which, and the flags of each file of simd/. `make SIMD= ...` leaves them out. --------------

MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
SIMD := $(if $(filter x86_64%,$(MACHINE)),scalar_fma avx2 avx512)$(if $(filter aarch64% arm64%,$(MACHINE)),neon)
scalar_fma.SIMD := -mfma
avx2.SIMD := -mavx2 -mfma
avx512.SIMD := -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma
emulated512.SIMD := -mavx2 -mfma -Wno-psabi
# The double build has the scalar table alone; what only compiles here is compiled once; the width of AVX-512 is tested
# through SIMDe's emulation.
release.BACKENDS := $(SIMD)
mpi.BACKENDS := $(SIMD)
cuda.BACKENDS := $(SIMD)
gcc-float.BACKENDS := $(SIMD) $(if $(filter avx2,$(SIMD)),emulated512)
$(foreach t,gcc-fma gcc-sanitize clang-float,$(eval $(t).BACKENDS := $(filter-out avx512,$(SIMD))))
aarch64.BACKENDS := neon
musl.BACKENDS := $(filter-out avx512,$(SIMD))
windows.BACKENDS := scalar_fma avx2
upper = $(shell echo $(1) | tr a-z A-Z)
$(foreach c,release mpi cuda $(EDGE) $(TESTS),$(eval $(c).FLAGS += $(foreach b,$($(c).BACKENDS),-DMTAN_WITH_$(call upper,$(b)))))

# ---- CUDA without a GPU: the kernels as C++ for the tests' shim, which watches what they touch (tests/cuda/cuda_shim.h) -------
# The host side of the backend is in every program, as `mtan bench` counts what it would launch; what looks for the machine's
# driver is where there is a GPU to be found, or a test of it. Kernels are in float: programs in double have none of it.

CUDA_C := platform/cuda/cuda.c platform/cuda/backend.c
CUDA_LOAD_C := platform/cuda/load.c
IN_DOUBLE := double gcc-double clang-double
SHIM := $(if $(HAS_CXX),$(if $(findstring linux,$(MACHINE)),build/cuda-shim/cuda_kernels.o build/cuda-shim/cuda_cases.o))
SHIM_TESTS := $(if $(SHIM),gcc-float gcc-sanitize clang-float)
SHIM_FLAGS := -std=c++11 -O1 -fsanitize=thread -ffp-contract=off -fno-math-errno -fno-exceptions -fno-rtti \
	-Wall -Wextra -Wno-unknown-pragmas -Werror $(if $(HAS_FMA),$(if $(filter x86_64%,$(MACHINE)),-mfma))
$(foreach t,$(SHIM_TESTS),$(eval $(t).FLAGS += -DMTAN_WITH_CUDA_SHIM)$(eval $(t).SHIM := $(SHIM)))
build/cuda-shim/%.o: tests/cuda/%.cpp tests/cuda/cuda_shim.h tests/cuda/cuda_cases.h platform/cuda/kernels.cu platform/cuda/arguments.h mtan.c Makefile
	@mkdir -p $(@D)
	@$(CXX) $(SHIM_FLAGS) -DMTAN_CUDA_SHIM -c $< -o $@

# ---- Rules, once per configuration -----------------------------------------------------------------------------

PROGRAMS := $(wildcard tools/check/*.c tools/bench/*.c tools/edge/*.c tools/demo/*.c) # each a program of its own
SUITE_C := tests/main.c $(wildcard tests/*/test_*.c)
SHARED_C := $(filter-out tools/mtan/command/main.c platform/ranks.c $(wildcard tests/library/*_program.c tests/library/bits_dump.c tests/*/test_*.c),\
	$(wildcard tests/support/*.c tests/library/*.c tests/cuda/*.c tools/data/*.c tools/baselines/*.c tools/mtan/*/*.c platform/*.c)) $(CUDA_C) # serves tests and tools
# The command is a POSIX program: on Windows there is the library alone, with the suites that MTAN_TESTS_LIBRARY leaves.
windows.SUITE_C := tests/main.c tests/cuda/test_cuda.c $(wildcard tests/library/test_*.c)
$(foreach t,cuda $(SHIM_TESTS),$(eval $(t).SHARED_C := $(SHARED_C) $(CUDA_LOAD_C)))
$(foreach t,$(IN_DOUBLE),$(eval $(t).SHARED_C := $(filter-out $(CUDA_C) tools/mtan/paper/cost.c,$(SHARED_C))))
windows.SHARED_C := $(filter-out tools/% tests/support/baseline% tests/support/command_line% $(CUDA_C),$(SHARED_C)) tools/data/generators.c
$(foreach c,release double mpi cuda $(EDGE) $(TESTS),$(foreach v,SUITE_C SHARED_C,$(eval $(c).$(v) ?= $$($(v)))))

define rules
build/$(1)/mtan.o: LIBRARY := $$($(1).LIBRARY)
build/$(1)/%.o: %.c Makefile
	@mkdir -p $$(@D)
	@$$($(1).CC) $$(ALWAYS) $$($(1).FLAGS) $$(LIBRARY) -c $$< -o $$@
$$(foreach b,$$($(1).BACKENDS),$$(eval build/$(1)/simd/mtan_$$(b).o: LIBRARY := $$($$(b).SIMD)))
$$($(1).SUITE_C:%.c=build/$(1)/%.o): | build/deps/greatest.h
$$($(1).BACKENDS:%=build/$(1)/simd/mtan_%.o): | build/deps/simde
$$($(1).SUITE_C:%.c=build/$(1)/%.o) $$($(1).SHARED_C:%.c=build/$(1)/%.o) $$(patsubst %.c,build/$(1)/%.o,$$(PROGRAMS) tools/mtan/command/main.c): | build/deps/stb
build/$(1)/shared.a: $$($(1).SHARED_C:%.c=build/$(1)/%.o) build/$(1)/mtan.o $$($(1).BACKENDS:%=build/$(1)/simd/mtan_%.o)
	@rm -f $$@ && $$(AR) rcs $$@ $$^
build/$(1)/run-tests: $$($(1).SUITE_C:%.c=build/$(1)/%.o) $$($(1).SHIM) build/$(1)/shared.a
	@$$($(1).CC) $$($(1).FLAGS) $$^ $$(or $$($(1).LIBS),$$(LIBS)) -o $$@
$$(foreach p,$$(PROGRAMS:%.c=%),$$(eval build/$(1)/$$(notdir $$(p)): build/$(1)/$$(p).o))
$$(patsubst %.c,build/$(1)/%,$$(notdir $$(PROGRAMS))): build/$(1)/shared.a
	@$$($(1).CC) $$($(1).FLAGS) $$(filter %.o,$$^) $$< $$(LIBS) -o $$@
endef
$(foreach c,release double mpi cuda $(EDGE) $(TESTS),$(eval $(call rules,$(c))))
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find build -name '*.d' 2>/dev/null)

build/deps/greatest.h:
	@tools/deps.sh greatest
build/deps/simde:
	@tools/deps.sh simde
build/deps/stb:
	@tools/deps.sh stb

# ---- Targets ---------------------------------------------------------------------------------------------------

help: found ## this list
	@echo; sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 14

found: # one line per optional thing
	@say() { if [ -n "$$2" ]; then echo "found    $$1"; else echo "missing  $$1: $$3"; fi; }; \
	say gcc "$(HAS_GCC)" "its configurations are skipped"; \
	say clang "$(HAS_CLANG)" "its configurations and make fuzz are skipped"; \
	say "$(CXX)" "$(HAS_CXX)" "make cxx is skipped"; \
	say zlib "$(HAS_ZLIB)" "compressed files must be unpacked first"; \
	say "FMA in this CPU" "$(HAS_FMA)" "gcc-fma is skipped"; \
	say mpicc "$(HAS_MPI)" "make mpi is skipped"; \
	say nvcc "$(NVCC)" "make cuda cannot be made; the kernels are tested without it"; \
	say "gcc's ThreadSanitizer" "$(HAS_TSAN)" "gcc-tsan is skipped"

lib: build/libmtan.a ## the library as build/libmtan.a
build/libmtan.a: build/release/mtan.o
	@rm -f $@ && $(AR) rcs $@ $^ && echo $@

mtan: build/mtan ## the command: train, eval, predict, interpolate, report, ... as build/mtan
	@echo build/mtan
build/mtan: build/release/tools/mtan/command/main.o build/release/shared.a
	@$(CC) $(release.FLAGS) $^ $(LIBS) -o $@

demo: build/release/demo ## train on the paper's synthetic series and interpolate them
	@build/release/demo $(ARGS)

test: found ## build and run every configuration, then the checks below; the sum stands on the last line
	@MAKE='$(MAKE)' tools/check/run_tests.sh all $(JOBS) $(foreach t,$(TESTS) $(CHECKS),'$(t):$(strip $($(t).SKIP))')

$(TESTS:%=test-%): test-%: build/%/run-tests
	@tools/check/run_tests.sh one $* build/$*/run-tests -v $($*.ARGS)
$(CHECKS:%=test-%): test-%:
	@tools/check/run_tests.sh check $* $(MAKE) --no-print-directory $*

suites: ## check that every suite of tests/ is in the list that runs
	@for s in $$(sed -n 's/^SUITE(\([a-z_]*\)).*/\1/p' tests/*/test_*.c); do \
		grep -q "^X($$s)" tests/suites.h || { echo "mtan: $$s is not in tests/suites.h"; bad=1; }; done; test -z "$$bad"

departures: ## every departure that a comment cites is explained in golden/departures.md, none is cited where users read
	@tools/check/departures.sh

fresh: ## on a fresh machine what is fetched comes before what includes it
	@for t in demo mtan bench; do $(MAKE) --no-print-directory -Bns $$t 2>/dev/null | awk -v target=$$t \
		'/deps.sh stb/ { fetched = 1 } / -c tools\// && !fetched { print "mtan: make " target " compiles before it fetches stb"; exit 1 } \
		END { if (!fetched) exit 1 }' || exit 1; done

vendored: $(if $(SIMD),build/deps/simde) ## the files in an empty folder, with the program of the manual, in one command line per backend
	@tools/check/vendored.sh $(CC) $(if $(filter avx2,$(SIMD)),"avx2:$(avx2.SIMD):avx2" "avx512:$(avx512.SIMD):avx512f")

symbols: ## no global name without mtan_, nothing undefined but mem*, no writable data
	@tools/check/symbols.sh $(sort $(CC) $(if $(HAS_CLANG),clang))

cxx: build/release/mtan.o ## the header, its internals too, and a program that uses it, as C++
	@echo '#include "mtan.h"' | $(CXX) -std=c++11 -pedantic -Wall -Wextra -Werror -I. -DMTAN_INTERNALS -fsyntax-only -x c++ -
	@$(CXX) -std=c++11 -pedantic -Wall -Wextra -Werror -I. tests/library/cxx_program.cpp build/release/mtan.o -o build/cxx_program
	@build/cxx_program

manual: build/mtan ## the man page that `mtan man` prints, as mandoc sees it
	@build/mtan man | mandoc -T lint

# One program linked with mtan.c by each compiler, at each level, with and without fused multiply-add: COMPILER-LEVEL-CLASS.
# No other flag: the source alone has to keep contraction off. The test takes the two levels that differ most, as compiling
# them all takes a minute.
LEVELS ?= O0 O1 O2 O3
test-bits: export LEVELS := O0 O3
BITS = $(foreach c,$(if $(HAS_GCC),gcc) $(if $(HAS_CLANG),clang),$(foreach l,$(LEVELS),$(foreach k,unfused $(if $(HAS_FMA),fused),$c-$l-$k)))
BITS_PARTS := library/bits_dump $(addprefix support/,ladder check tiny_model kernel_cases small caller)
BITS_OBJECTS := $(BITS_PARTS:%=build/release/tests/%.o)
build/bits/%.o: mtan.c mtan.h Makefile
	@mkdir -p $(@D)
	@$(word 1,$(subst -, ,$*)) -I. -$(word 2,$(subst -, ,$*)) $(if $(findstring -fused,$*),-mfma) -c $< -o $@
build/bits/%.txt: build/bits/%.o $(BITS_OBJECTS)
	@$(CC) $(BITS_OBJECTS) $< -lm -o build/bits/$* && build/bits/$* >$@
bits: ## the same bits from every compiler and level, for fused and unfused builds (LEVELS="O0 O1 O2 O3")
	@$(MAKE) -s --no-print-directory $(BITS:%=build/bits/%.txt)
	@tools/check/bits.sh $(BITS:%=build/bits/%.txt)

agreement: build/release/agreement build/double/agreement ## differences from the reference, per case and tensor (ARGS=--worst: per case)
	@build/double/agreement $(ARGS); double=$$?; build/release/agreement $(ARGS) && exit $$double

ulp: build/release/ulp ## largest error of each function over all floats (minutes)
	@build/release/ulp $(ARGS)

sizes: build/release/sizes ## bytes that each named model needs for weights, prediction and training
	@build/release/sizes $(ARGS)

bench: build/release/bench ## speed, memory and growth on this machine (ARGS="--help" lists the options)
	@build/release/bench $(ARGS)

bench-peers: build/release/bench ## mtan against PyTorch, the published code and ONNX Runtime (PYTHON=, DATA=, REFERENCE=, ARGS=)
	@$(PYTHON) tools/bench/bench_peers.py $(if $(DATA),--data "$(DATA)") $(if $(REFERENCE),--reference "$(REFERENCE)") $(ARGS)

edge: ## the tests on other CPUs, C libraries and boards, most of them emulated: tools/edge/edge.sh has the list (EDGE_ARGS="armhf windows": those)
	@MAKE='$(MAKE)' JOBS=$(JOBS) tools/edge/edge.sh $(EDGE_ARGS)
# As in `make bits`, mtan.c is compiled with no flag that would keep contraction off for it.
define edge_bits
build/$(1)/bits: $$(BITS_PARTS:%=build/$(1)/tests/%.o) mtan.c mtan.h Makefile
	@$$($(1).CC) $$($(1).FLAGS) -I. $$(filter %.o %.c,$$^) $$($(1).LIBS) -o $$@
endef
$(foreach t,$(EDGE),$(eval $(call edge_bits,$(t))))

wasm: build/mtan ## mtan as WebAssembly, and a page to play with: build/wasm/index.html (emscripten, node; chromium-headless-shell tests it)
	@tools/edge/wasm.sh

mpi: $(if $(HAS_MPI),build/mtan build/mtan-mpi) ## build/mtan-mpi for mpirun; 1, 2 and 4 ranks have the bits of one process (needs mpicc)
	@tools/check/mpi.sh $(CC)
build/mtan-mpi: build/mpi/tools/mtan/command/main.o build/mpi/platform/ranks.o build/mpi/shared.a
	@$(mpi.CC) $(mpi.FLAGS) $^ $(LIBS) -o $@

# The kernels for the GPUs that this nvcc serves, 52 and 61 (Titan X) as long as it does; newer ones compile the PTX themselves.
CUDA_CODES = $(filter 52 61 75 86,$(patsubst sm_%,%,$(shell "$(NVCC)" --list-gpu-code)))
cuda: $(if $(NVCC),build/mtan-cuda build/libmtan_cuda.a) ## the command and the backend for NVIDIA GPUs: build/mtan-cuda, build/libmtan_cuda.a (needs nvcc; running needs the driver alone)
	@test -n "$^" || { echo "mtan: make cuda needs nvcc: name it with NVCC="; exit 2; }
	@echo "$^: code for $(CUDA_CODES:%=sm_%), PTX for compute_$(firstword $(CUDA_CODES))"
build/cuda/kernels.fatbin: platform/cuda/kernels.cu platform/cuda/arguments.h mtan.c Makefile
	@mkdir -p $(@D)
	@"$(NVCC)" -fatbin --fmad=false $(foreach c,$(CUDA_CODES),-gencode arch=compute_$(c),code=sm_$(c)) \
		-gencode arch=compute_$(firstword $(CUDA_CODES)),code=compute_$(firstword $(CUDA_CODES)) $< -o $@
build/cuda/image.c: build/cuda/kernels.fatbin
	@{ echo '#include "../../platform/cuda/mtan_cuda.h"'; echo 'const unsigned long long mtan_cuda_image[] = {'; \
		od -An -v -tx8 $< | sed 's/ *\([0-9a-f][0-9a-f]*\)/0x\1,/g'; echo '};'; } >$@
build/cuda/image.o: build/cuda/image.c
	@$(CC) -std=c99 -O1 -c $< -o $@
build/libmtan_cuda.a: $(patsubst %.c,build/cuda/%.o,$(CUDA_C) $(CUDA_LOAD_C)) build/cuda/image.o
	@rm -f $@ && $(AR) rcs $@ $^
build/mtan-cuda: build/cuda/tools/mtan/command/main.o build/cuda/image.o build/cuda/shared.a
	@$(cuda.CC) $(cuda.FLAGS) $^ $(LIBS) -o $@

cuda-check: build/release/cuda_check ## kernels for both Titan X with NVRTC 12.9 and with clang: registers, spills, occupancy
	@PYTHON="$(PYTHON)" CC="$(CC)" tools/check/cuda_check.sh $< $(if $(HAS_CLANG),clang)

FUZZ_SECONDS ?= 20
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
fuzz: $(if $(HAS_CLANG),$(FUZZERS:%=build/fuzz/%)) ## feed the readers hostile input (needs clang; FUZZ_SECONDS=20)
	@test -n "$^" || echo "skipped: no clang, or no tests/fuzz/*.c"
	@mkdir -p build/fuzz/fuzz_torchfile.corpus && cp golden/torch-*.pt build/fuzz/fuzz_torchfile.corpus
	@for f in $^; do echo "$$f"; mkdir -p $$f.corpus; \
		$$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=0 -artifact_prefix=$$f. $$f.corpus \
		2>$$f.log && tail -n 1 $$f.log || { tail -n 40 $$f.log; exit 1; }; done
fuzz_own.C := $(patsubst %,tools/data/%.c,array dataset gzip csv field names own own_rows own_stream)
fuzz_torchfile.C := $(patsubst %,tools/mtan/%.c,torch/zipfile torch/pickle torch/torchfile torch/torchwrite torch/convert_read report/json_text) tools/data/array.c
build/fuzz/fuzz_own: $(fuzz_own.C)
build/fuzz/fuzz_torchfile: $(fuzz_torchfile.C)
build/fuzz/%: tests/fuzz/%.c mtan.c mtan.h Makefile | build/deps/stb
	@mkdir -p $(@D)
	@clang $(filter-out -MMD -MP,$(ALWAYS)) -O1 $(SAN) -fsanitize=fuzzer $< mtan.c $($*.C) $(if $(HAS_ZLIB),-lz) -lm -o $@

tables: build/mtan ## tools/mtan/paper/results.txt: the paper's tables beside the numbers in results.tsv (DATA=folder of the data sets)
	@build/mtan table $(if $(DATA),--data "$(DATA)") --results tools/mtan/paper/results.tsv --quiet >tools/mtan/paper/results.txt

golden: ## make golden/ again (needs PyTorch, REFERENCE=checkout of the published code; DATA=folder of the data sets for what was read from them)
	@test -n "$(REFERENCE)" || { echo "mtan: make golden needs REFERENCE=path of a checkout of the published code"; exit 2; }
	@$(PYTHON) tools/golden/golden.py --reference "$(REFERENCE)"
	@$(PYTHON) tools/golden/golden_rng.py "$(REFERENCE)" golden
	@$(PYTHON) tools/golden/golden_init.py "$(REFERENCE)" golden
	@$(PYTHON) tools/golden/golden_metrics.py "$(REFERENCE)" golden
	@$(PYTHON) tools/golden/golden_torchfile.py "$(REFERENCE)" golden
	@$(PYTHON) tools/golden/golden_baselines.py
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_data.py "$(REFERENCE)" "$(DATA)" golden
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_losses.py "$(REFERENCE)" "$(DATA)" golden
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_mimic3.py "$(DATA)/mimic3-demo" golden

deps: ## fetch all dependencies into build/deps (targets fetch what they need by themselves)
	@tools/deps.sh

format-check: ## does the C code look as .clang-format says?
	@clang-format --dry-run $(wildcard *.[ch] tests/*.[ch] tests/*/*.[ch] tools/*/*.[ch] tools/mtan/*/*.[ch] platform/*.[ch] platform/cortex-m/*.[ch] platform/cuda/*.[ch] platform/cuda/*.cu tests/*/*.cpp)

clean: ## remove build/, but not the fetched dependencies
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} + 2>/dev/null || :

.PHONY: help found lib mtan demo test suites departures fresh vendored symbols cxx bits manual agreement ulp bench bench-peers edge wasm mpi cuda cuda-check fuzz tables golden deps format-check clean \
	$(TESTS:%=test-%) $(CHECKS:%=test-%)
