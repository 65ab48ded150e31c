# The part of the Makefile for maintainers: other CPUs and C libraries, boards, GPUs, several processes, Python. None of it is needed
# by `make test` or `make demo`, except the CUDA kernels as C++, which the tests run without a GPU.

PYTHON ?= python3
HAS_MPI := $(call has,mpicc)
NVCC ?= $(or $(shell command -v nvcc 2>/dev/null),$(wildcard /usr/local/cuda/bin/nvcc))

# ---- Configurations: see the Makefile ----------------------------------------------------------------------------

# `make edge`: other CPUs, emulated, and other C libraries. Cross compilers have no zlib. All CPUs fuse multiply and add but
# armv7 (VFPv3), of which only the bits are compared. C99 on s390x would evaluate float as double. The isnan of musl and mingw has
# a branch for float in it, which warns.
EDGE := aarch64 riscv64 armhf armv7 s390x musl windows
CONFIGURATIONS += $(EDGE) cuda mpi coverage
STRICT += $(EDGE)
edge = -O2 -static -UMTAN_ZLIB
aarch64.CC := aarch64-linux-gnu-gcc
aarch64.FLAGS := $(edge)
aarch64.BACKENDS := neon
riscv64.CC := riscv64-linux-gnu-gcc
riscv64.FLAGS := $(edge) -DMTAN_TESTS_LIBRARY
riscv64.SUITE_C := $(LIBRARY_SUITE_C)
riscv64.SHARED_C := $(LIBRARY_SHARED_C)
armhf.CC := arm-linux-gnueabihf-gcc
armhf.FLAGS := $(edge) -mfpu=vfpv4 -mfloat-abi=hard
armv7.CC := $(armhf.CC)
armv7.FLAGS := $(edge) -mfpu=vfpv3-d16 -mfloat-abi=hard
s390x.CC := s390x-linux-gnu-gcc
s390x.FLAGS := $(edge) -fexcess-precision=fast
musl.CC := musl-gcc
musl.FLAGS := $(edge) -Wno-float-conversion
musl.BACKENDS := $(filter-out avx512,$(SIMD))
# The command is a POSIX program: on Windows there is the library alone, with the suites that MTAN_TESTS_LIBRARY leaves.
windows.CC := x86_64-w64-mingw32-gcc-posix
windows.FLAGS := $(edge) -Wno-float-conversion -DMTAN_TESTS_LIBRARY -D__USE_MINGW_ANSI_STDIO=1 # printf as in C99
windows.BACKENDS := scalar_fma avx2
windows.SUITE_C := $(LIBRARY_SUITE_C)
windows.SHARED_C := $(LIBRARY_SHARED_C)
$(foreach t,$(EDGE),$(eval $(t).LIBS := -lm -pthread))

# `make cuda`: the command for NVIDIA GPUs; `make mpi`: the command for several processes.
cuda.FLAGS = $(CFLAGS) -DMTAN_WITH_CUDA
cuda.BACKENDS := $(SIMD)
cuda.SHARED_C := $(SHARED_C) $(CUDA_LOAD_C)
mpi.CC := mpicc
mpi.FLAGS = $(CFLAGS) -DMTAN_MPI
mpi.BACKENDS := $(SIMD)

# `make coverage`: as gcc-float, but every branch of the source is a branch of the program, which -O0 alone keeps.
coverage.CC := gcc
coverage.FLAGS := -O0 --coverage -fprofile-update=atomic -fprofile-exclude-files='^(build/deps|tests|/usr)/'
coverage.BACKENDS = $(gcc-float.BACKENDS)

# ---- CUDA without a GPU: the kernels as C++ for the tests' shim, which watches what they touch (tests/cuda/cuda_shim.h) -------

SHIM := $(if $(HAS_CXX),$(if $(findstring linux,$(MACHINE)),build/cuda-shim/cuda_kernels.o build/cuda-shim/cuda_cases.o))
SHIM_FLAGS := -std=c++11 -O1 -fsanitize=thread -ffp-contract=off -fno-math-errno -fno-exceptions -fno-rtti \
	-Wall -Wextra -Wno-unknown-pragmas -Werror $(if $(HAS_FMA),$(if $(filter x86_64%,$(MACHINE)),-mfma))
$(foreach t,$(if $(SHIM),gcc-float gcc-sanitize coverage),$(eval $(t).SHIM := $(SHIM))\
	$(eval $(t).FLAGS += -DMTAN_WITH_CUDA_SHIM)$(eval $(t).SHARED_C := $(SHARED_C) $(CUDA_LOAD_C)))
build/cuda-shim/%.o: tests/cuda/%.cpp tests/cuda/cuda_shim.h tests/cuda/cuda_cases.h platform/cuda/kernels.cu platform/cuda/arguments.h mtan.c tools/maintain.mk
	@mkdir -p $(@D)
	@$(CXX) $(SHIM_FLAGS) -DMTAN_CUDA_SHIM -c $< -o $@

# ---- Measurements --------------------------------------------------------------------------------------------------

ulp: build/release/ulp ## largest error of each function over all floats (minutes)
	@build/release/ulp $(ARGS)

bench-peers: build/release/bench ## mtan against PyTorch, the published code and ONNX Runtime (PYTHON=, DATA=, REFERENCE=, ARGS=)
	@$(PYTHON) tools/bench/bench_peers.py $(if $(DATA),--data "$(DATA)") $(if $(REFERENCE),--reference "$(REFERENCE)") $(ARGS)

growth: build/mtan ## how time and memory grow with observations, channels, reference points, records and threads (minutes; PYTHON=, ARGS=)
	@$(PYTHON) tools/bench/growth.py $(ARGS)

tables: build/mtan ## tools/mtan/paper/results.md: the paper's tables beside the numbers in results.tsv (DATA=folder of the data sets)
	@build/mtan table $(if $(DATA),--data "$(DATA)") --results tools/mtan/paper/results.tsv --markdown --quiet >tools/mtan/paper/results.md

# About five minutes on one idle core: 1280 records of each row, three times, scaled.
EPOCHS_PAGE := tools/mtan/paper/README.md
epochs: build/mtan ## seconds per epoch of every row of table 2 into tools/mtan/paper/README.md, beside the paper's (DATA=folder of the data sets; minutes)
	@test -n "$(DATA)" || { echo "mtan: make epochs needs DATA=folder that holds physionet2012 and activity"; exit 2; }
	@for set in physionet2012 activity; do echo; build/mtan bench --rows --data "$(DATA)/$$set" --threads 1 --records 1280 --markdown || exit 2; done >build/epochs.md
	@awk '/^<!-- end of epochs -->/ { inside = 0 } !inside { print } /^<!-- epochs -->/ { inside = 1; while ((getline line < "build/epochs.md") > 0) print line; print "" }' \
	  $(EPOCHS_PAGE) >build/epochs-page.md && cp build/epochs-page.md $(EPOCHS_PAGE)

# Three quarters of an hour on one core; EPOCHS=60 is enough to see what they look like.
figures: build/figures/mtan/best.safetensors build/figures/l-ode-ode/best.safetensors ## build/figures/*.svg: the paper's figures of the synthetic set; trains the two models if they are not there (EPOCHS=)
	@build/mtan figures $^ -o build/figures

build/figures/mtan/best.safetensors: FIGURE_MODEL = toy-interp
build/figures/l-ode-ode/best.safetensors: FIGURE_MODEL = toy-l-ode-ode
build/figures/%/best.safetensors: | build/mtan
	@mkdir -p build/figures
	@build/mtan train $(FIGURE_MODEL) --latent 20 $(if $(EPOCHS),--epochs $(EPOCHS)) --out $(@D)

golden: ## make golden/ again (needs PyTorch, REFERENCE=checkout of the published code; DATA=folder of the data sets and LATENT_ODE=checkout of latent_ode for what needs them)
	@test -n "$(REFERENCE)" || { echo "mtan: make golden needs REFERENCE=path of a checkout of the published code"; exit 2; }
	@$(PYTHON) tools/golden/golden.py --reference "$(REFERENCE)"
	@for script in rng init metrics torchfile; do $(PYTHON) tools/golden/golden_$$script.py "$(REFERENCE)" golden || exit 1; done
	@$(PYTHON) tools/golden/golden_rivals.py golden
	@$(PYTHON) tools/golden/golden_tasks.py golden
	@$(PYTHON) tools/golden/golden_baselines.py
	@$(PYTHON) tools/golden/golden_variance.py golden
	@test -z "$(LATENT_ODE)" || $(PYTHON) tools/golden/golden_losses_latent.py "$(LATENT_ODE)" golden
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_data.py "$(REFERENCE)" "$(DATA)" golden
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_losses.py "$(REFERENCE)" "$(DATA)" golden
	@test -z "$(DATA)" || $(PYTHON) tools/golden/golden_mimic3.py "$(DATA)/mimic3-demo" golden

# ---- Other machines ------------------------------------------------------------------------------------------------

edge: ## the tests on other CPUs, C libraries and boards, most of them emulated: tools/edge/edge.sh has the list (EDGE_ARGS="armhf windows": those)
	@MAKE='$(MAKE)' JOBS=$(JOBS) tools/edge/edge.sh $(EDGE_ARGS)
# As in `make bits`, mtan.c is compiled with no flag that would keep contraction off for it.
$(EDGE:%=build/%/bits): build/%/bits: $(addprefix build/%/,$(BITS_C:.c=.o)) mtan.c mtan.h
	@$($*.CC) $($*.flags) -I. $(filter %.o %.c,$^) $($*.LIBS) -o $@

wasm: build/mtan ## mtan as WebAssembly, and a page to play with: build/wasm/index.html (emscripten, node; chromium-headless-shell tests it)
	@tools/edge/wasm.sh

dist: build/mtan ## archives for PlatformIO, Arduino, ESP-IDF and Zephyr, and the sources, in build/dist: tools/dist/facts says what is in them
	@rm -rf build/dist && mkdir -p build/dist && tools/dist/example.sh build/mtan build/dist/model.h
	@$(PYTHON) tools/dist/dist.py build/dist/model.h build/dist
dist-check: dist ## are they what those four want, the same bytes each time, and do their examples run on a Cortex-M4F? (tools/dist/check.py)
	@$(PYTHON) tools/dist/check.py build/mtan build/dist

wheel: build/deps/stb ## the Python package as a wheel for every Python on this platform, and its sources: build/python/mtan-* (tools/python)
	@tools/python/wheel.sh $(PYTHON)
python-test: build/deps/stb build/mtan ## that wheel in an empty virtual environment, beside the command; says what is missing
	@MTAN_COMMAND=$(CURDIR)/build/mtan tools/python/test.sh $(PYTHON)

mpi: $(if $(HAS_MPI),build/mtan build/mtan-mpi) ## build/mtan-mpi for mpirun; 1, 2 and 4 ranks have the bits of one process (needs mpicc)
	@tools/check/mpi.sh $(CC)
build/mtan-mpi: build/mpi/tools/mtan/command/main.o build/mpi/platform/ranks.o build/mpi/shared.a
	@$(mpi.CC) $(mpi.flags) $^ $(LIBS) -o $@

# ---- NVIDIA GPUs ---------------------------------------------------------------------------------------------------

# The kernels for the GPUs that this nvcc serves, 52 and 61 (Titan X) as long as it does; newer ones compile the PTX themselves.
CUDA_CODES = $(filter 52 61 75 86,$(patsubst sm_%,%,$(shell "$(NVCC)" --list-gpu-code)))
cuda: $(if $(NVCC),build/mtan-cuda build/libmtan_cuda.a) ## the command and the backend for NVIDIA GPUs: build/mtan-cuda, build/libmtan_cuda.a (needs nvcc; running needs the driver alone)
	@test -n "$^" || { echo "mtan: make cuda needs nvcc: name it with NVCC="; exit 2; }
	@echo "$^: code for $(CUDA_CODES:%=sm_%), PTX for compute_$(firstword $(CUDA_CODES))"
build/cuda/kernels.fatbin: platform/cuda/kernels.cu platform/cuda/arguments.h mtan.c tools/maintain.mk
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
	@$(CC) $(cuda.flags) $^ $(LIBS) -o $@

cuda-check: build/release/cuda_check ## kernels for both Titan X with NVRTC 12.9 and with clang: registers, spills, occupancy
	@PYTHON="$(PYTHON)" CC="$(CC)" tools/check/cuda_check.sh $< $(if $(HAS_CLANG),clang)

# ---- Hostile input -------------------------------------------------------------------------------------------------

# libFuzzer's targets, tests/fuzz/NAME.c, linked with what they need of the tools. Comparisons are not traced: dictionaries and words
# know what to try, and parsers run faster without. NAME-fast is the same target without sanitizers, for long runs of those that keep
# their memory at fences (described.h) and need no more of the tools than the baselines.
FUZZ_SECONDS ?= 20
FUZZ_RUNS ?=
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
FUZZ ?= $(FUZZERS)
FUZZ_COVERAGE := -fsanitize=fuzzer-no-link -fno-sanitize-coverage=trace-cmp,trace-div,trace-gep
CONFIGURATIONS += fuzzed fuzzed-fast
STRICT += fuzzed fuzzed-fast
fuzzed.CC := clang
fuzzed.FLAGS := -O2 $(SAN) $(FUZZ_COVERAGE)
fuzzed.SHARED_C := $(filter tools/% platform/%,$(SHARED_C))
fuzzed-fast.CC := clang
fuzzed-fast.FLAGS := -O3 -g $(FUZZ_COVERAGE)
fuzzed-fast.SHARED_C := $(filter tools/baselines/% tools/data/%,$(SHARED_C))
$(foreach c,fuzzed fuzzed-fast,$(FUZZERS:%=build/$(c)/tests/fuzz/%.o)): | build/deps/stb
build/fuzz/%-fast: build/fuzzed-fast/tests/fuzz/%.o build/fuzzed-fast/shared.a
	@mkdir -p $(@D)
	@clang $(fuzzed-fast.flags) -fsanitize=fuzzer $^ $(LIBS) -o $@
build/fuzz/%: build/fuzzed/tests/fuzz/%.o build/fuzzed/shared.a
	@mkdir -p $(@D)
	@clang $(fuzzed.flags) -fsanitize=fuzzer $^ $(LIBS) -o $@
fuzz: ## feed the readers hostile input (needs clang's libFuzzer; FUZZ_SECONDS=20 each, or FUZZ_RUNS; FUZZ="model gzip": those)
	@MAKE='$(MAKE)' JOBS=$(JOBS) FUZZ_RUNS=$(FUZZ_RUNS) tools/check/fuzz.sh on $(FUZZ_SECONDS) $(FUZZ)
fuzz-short: ## the same for three seconds each, from the seeds alone; the sum stands on the last line
	@MAKE='$(MAKE)' JOBS=$(JOBS) FUZZ_RUNS= tools/check/fuzz.sh anew 3 $(FUZZ)
fuzz-seeds: build/release/fuzz_seeds ## make the seeds of the model files again, after a change of settings or parameters
	@mkdir -p tests/fuzz/seeds/model tests/fuzz/seeds/trainer && $< tests/fuzz/seeds

# The library in front of glibc is compiled without large files: it has the names of both sizes.
FAULTS ?= short
FAULTS_SKIP := $(shell printf '\043include <stdlib.h>\n\043if !defined __linux__ || !defined __GLIBC__ || !defined __LP64__\n\043error\n\043endif\n' \
	| $(CC) -E -x c - >/dev/null 2>&1 || echo needs Linux with glibc and 64 bits)
FAULTS_MTAN := $(if $(filter sanitize,$(FAULTS)),build/gcc-sanitize/mtan,build/mtan)
faults: $(if $(FAULTS_SKIP),,$(FAULTS_MTAN) build/faults/faults build/faults/preload.so) ## every call of the system fails once, power cuts, kills: tests/README.md (FAULTS=short, long, sanitize; CASE=train)
	@if [ -n "$(FAULTS_SKIP)" ]; then echo "skipped: $(FAULTS_SKIP)"; echo "0 passed, 0 failed, 1 skipped"; else \
		build/faults/faults $(if $(filter long,$(FAULTS)),long,short) $(FAULTS_MTAN) build/faults/preload.so $(if $(CASE),"$(CASE)"); fi
build/faults/faults: $(filter-out %/preload.c,$(wildcard tests/faults/*.c)) $(wildcard tests/faults/*.h) tools/maintain.mk
	@mkdir -p $(@D)
	@$(CC) -std=c99 $(WARN) -Werror -O1 -D_FILE_OFFSET_BITS=64 $(filter %.c,$^) -o $@
build/faults/preload.so: tests/faults/preload.c tests/faults/faults.h tools/maintain.mk
	@mkdir -p $(@D)
	@$(CC) -std=c99 $(WARN) -Werror -O1 -fno-builtin -fPIC -shared $< -ldl -o $@
build/gcc-sanitize/mtan: build/gcc-sanitize/tools/mtan/command/main.o $(gcc-sanitize.SHIM) build/gcc-sanitize/shared.a
	@gcc $(gcc-sanitize.FLAGS) $^ $(LIBS) -o $@

# ---- What the tests reach ----------------------------------------------------------------------------------------

coverage: build/coverage/run-tests ## lines and branches that the tests reach, and their limits (minutes; COVER=mtan.c: what is missing there; SUITES="ops_suite": those, added)
	@tools/check/coverage.sh $(JOBS) '$(COVER)' $(SUITES)

# Faults in mtan.c, linked with the objects of gcc-float. It is compiled as gcc-fma is, so that the vectors are of its class: simd_suite
# compares their bits, which have no fault, with the scalar kernels. MUTANTS_AGAIN=again: what survived the last run without a judgement.
MUTANTS ?= 300
MUTANTS_SEED ?= 1
MUTANTS_AGAIN ?= anew
mutants: build/gcc-float/run-tests ## small faults in mtan.c, one at a time: does a test fail? (minutes; MUTANTS=300, MUTANTS_SEED=1, MUTANTS_AGAIN=again)
	@$(PYTHON) tools/check/mutants.py $(MUTANTS) $(MUTANTS_SEED) $(JOBS) $(MUTANTS_AGAIN) \
		"gcc -std=c99 -ffp-contract=off -I. $(gcc-float.flags) $(if $(HAS_FMA),$(gcc-fma.LIBRARY)) -w -c" "gcc $(gcc-float.suites) $(gcc-float.SHIM)" "build/gcc-float/shared.a $(LIBS)" \
		"-O1 $(SAN)"

format-check: ## does the C code look as .clang-format says?
	@clang-format --dry-run $$(git ls-files '*.c' '*.h' '*.cpp' '*.cu')

.PHONY: ulp bench-peers growth tables epochs figures golden edge wasm mpi cuda cuda-check fuzz faults format-check coverage mutants fuzz-short fuzz-seeds dist dist-check wheel python-test
