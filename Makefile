# Two commands do everything on a fresh machine: `make demo` and `make test`.
.PHONY: demo test setup build recorder lint doc unit real cluster bench install

demo: setup build
	scripts/demo.sh

test: setup lint doc unit real cluster

setup:
	scripts/setup.sh

build: setup
	cargo build --release --locked --workspace

# The recorder for targets on which foretell does not run (docs/src/binaries.md).
RECORDER = crates/foretell-record/recorder/foretell_sync.c
recorder: setup
	mkdir -p target/recorder
	for compiler in arm-linux-gnueabihf-gcc aarch64-linux-gnu-gcc; do \
	  $$compiler -Wall -Wextra -Werror -O2 -fPIC -shared -pthread -ldl $(RECORDER) \
	    -o target/recorder/libforetell_sync-$${compiler%%-*}.so || exit 1; done

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

doc: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

unit: setup
	scripts/planners.sh
	scripts/report-check.sh
	scripts/browser.sh
	cargo test --workspace --locked

# Builds and records a program that nobody here wrote; with what the tests built.
real: unit
	scripts/real_programs.sh

# Explores in parts, with GNU parallel and Slurm; with what the tests built.
cluster: unit
	scripts/cluster.sh

bench: build
	scripts/planners.sh
	for table in trace-info trace-binary predict-families predict-million scale solvers neighbourhood planner schedule runs record binary thesis verify explore first-finding; do \
	  echo "== $$table"; target/release/foretell-bench $$table || exit 1; done

# The command goes to PREFIX/bin, the compiler plugin and the runtime to PREFIX/lib/foretell.
PREFIX ?= /usr/local
install: build
	install -D -m 755 target/release/foretell $(PREFIX)/bin/foretell
	install -D -m 755 target/release/cargo-foretell $(PREFIX)/bin/cargo-foretell
	install -D -m 755 target/release/libforetell_runtime.so $(PREFIX)/lib/foretell/libforetell_runtime.so
	install -D -m 755 target/release/libforetell_qemu.so $(PREFIX)/lib/foretell/libforetell_qemu.so
	install -D -m 755 target/release/libforetell_instrument.so $(PREFIX)/lib/foretell/libforetell_instrument.so
	cd crates/foretell-build && find include -type f -exec install -D -m 644 {} $(PREFIX)/lib/foretell/{} \;
