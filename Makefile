# make demo | make test: everything from a fresh checkout. A second run does no work twice.
#   TORCH='torch==2.13.0'   the torch to install (by default torch, if the environment has none)
#   VENV=.venv PYTHON=python3 ARGS='arguments for the demo or pytest'
#   LLTM_WITH_CUDA=0|1      build without | insist on CUDA
# make matrix ARGS='1.11.0 newest'   builds and tests other torches: toolchains/matrix.py
# make toolchains         the core and the bindings through older and Windows toolchains
# make sanitize           the core's kernels under compute-sanitizer, on a GPU
PYTHON ?= python3
TORCH ?= torch
VENV ?= .venv

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
STAMPS := $(VENV)/stamps
CXX_FILES := $(wildcard cuda_core/*.[ch]* bindings/*.[ch]*)
EXAMPLES := $(foreach end,h cpp cu,examples/*.$(end) examples/*/*.$(end) examples/*/*/*.$(end))
FORMATTED := $(CXX_FILES) $(wildcard benchmarks/stages/*.[ch]* tests/emulation/*.[ch]* $(EXAMPLES))
BUILD_INPUTS := $(CXX_FILES) setup.py pyproject.toml lltm_decoupled/_version.py \
	$(wildcard build_support/*.py)

.PHONY: demo test matrix toolchains sanitize lint format clean FORCE

demo: $(STAMPS)/built
	$(PY) -m lltm_decoupled demo $(ARGS)

test: $(STAMPS)/built
	$(PY) -m pytest tests -n auto --maxprocesses 8 $(ARGS)

matrix:
	$(PYTHON) -u toolchains/matrix.py $(ARGS)

# Needs neither torch nor a build of ours.
toolchains: $(STAMPS)/checkers
	$(PY) toolchains/install.py
	$(PY) -m pytest toolchains -n auto --dist worksteal -rs $(ARGS)

# Only our kernels are looked at. The tests copy all inputs from the host, so that initcheck finds no
# fault of torch's.
SANITIZED := tests/test_core_cuda.py tests/test_core_step.py tests/test_core_gradients.py \
	tests/test_core_sequence.py tests/test_core_sequence_product.py \
	tests/test_core_sequence_spread.py tests/test_core_split_product.py
sanitize: $(STAMPS)/built
	for tool in memcheck racecheck initcheck; do \
		LLTM_REQUIRE_CUDA=1 compute-sanitizer --tool $$tool --error-exitcode 1 \
			--kernel-name kernel_substring=lltm $(PY) -m pytest -q $(SANITIZED) $(ARGS) || exit 1; \
	done

lint: $(STAMPS)/built
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/bin/clang-format --dry-run -Werror $(FORMATTED)

format: $(STAMPS)/built
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(VENV)/bin/clang-format -i $(FORMATTED)

# The environment and the downloaded torch stay: remove $(VENV) by hand for a start from nothing.
clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache $(STAMPS)/built
	rm -f lltm_decoupled/_C*.so
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(PY):
	$(PYTHON) -m venv $(VENV)

$(STAMPS)/tools: | $(PY)
	@echo "Installing the build tools into $(VENV)"
	$(PIP) install -q wheel ninja 'setuptools>=64,<70; python_version < "3.12"' \
		'setuptools>=64; python_version >= "3.12"'
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/checkers: | $(PY)
	$(PIP) install -q pytest pytest-xdist
	@mkdir -p $(STAMPS) && touch $@

# A torch named by the caller is installed; otherwise one that is there already is left alone.
ifeq ($(origin TORCH),file)
TORCH_IS_FINE := $(PY) -c "import importlib.metadata as m; m.version('torch')" 2>/dev/null
else
TORCH_IS_FINE := false
endif

# torch before 2.3 was compiled against numpy 1 and does not work with numpy 2.
define NUMPY_IS_FINE
import importlib.metadata as m, sys
old_torch = [int(n) for n in m.version("torch").split(".")[:2]] < [2, 3]
try: sys.exit(old_torch and int(m.version("numpy").split(".")[0]) >= 2)
except m.PackageNotFoundError: sys.exit(old_torch)
endef
export NUMPY_IS_FINE

# What the binary depends on besides the sources. The file changes, and so causes a new build, only
# when one of these does.
$(STAMPS)/target: FORCE $(STAMPS)/tools
	@$(TORCH_IS_FINE) || { echo "Installing $(TORCH) into $(VENV)" && $(PIP) install '$(TORCH)'; }
	@$(PY) -c "$$NUMPY_IS_FINE" || $(PIP) install 'numpy<2'
	@{ $(PY) -c "import importlib.metadata as m; print(m.version('torch'))" && \
		env | grep -E '^(LLTM_WITH_CUDA|FORCE_CUDA|CUDA_HOME|TORCH_CUDA_ARCH_LIST)=' | sort; \
		true; } > $@.now
	@cmp -s $@.now $@ && rm $@.now || mv $@.now $@

$(STAMPS)/built: $(STAMPS)/target $(BUILD_INPUTS)
	@$(PY) -m build_support
	$(PIP) install -q --no-build-isolation -e '.[test]'
	$(PY) -c "import lltm_decoupled; print('Built:', lltm_decoupled.build_info())"
	@touch $@
