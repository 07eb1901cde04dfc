# Two commands do everything on a fresh machine: `make demo` and `make test`.
.PHONY: demo test setup build lint doc unit bench install

demo: setup build
	scripts/demo.sh

test: setup lint doc unit

setup:
	scripts/setup.sh

build: setup
	cargo build --release --locked

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

doc: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

unit: setup
	scripts/planners.sh
	cargo test --workspace --locked

bench: setup
	cargo run --release --locked -p foretell-bench -- all

install: setup
	cargo install --path crates/foretell --locked
