# fslab: `make demo` shows what it does, `make test` runs every test. Both install what is missing.
CARGO_BUILD_JOBS ?= $(shell nproc)
export CARGO_BUILD_JOBS

.PHONY: demo test campaign bench bench-counted calibrate check docs ci prepare clean-machine

demo:                    ## measure the filesystems of this machine, and in a guest those it lacks; ends with a report
	scripts/prepare --guest --kernel 6.12,6.1
	cargo build --release --locked -p fslab
	kernel=$$(ls target/kernels/linux-image-6.*.deb 2>/dev/null | sort -V | tail -n 1); \
		target/release/fslab demo $${kernel:+--kernel "$$kernel"}

test:                    ## the whole test suite; as root also what needs root
	scripts/prepare --browser --guest --targets --kernel 6.12,6.1 --kernel uml
	scripts/test

campaign:                ## kills, power loss, dangerous storage, hostile input; hours. SECTION=NAME runs one section
	scripts/prepare --guest --targets --kernel 6.12,6.1 --kernel uml
	scripts/campaign $(SECTION)

bench:                   ## what the load generator costs, against bare loops and other programs; minutes
	scripts/prepare fio bonnie++ fs_mark:fsmark dbench
	cargo bench -q --locked -p engine --bench generator -- $(CURDIR)/docs/method/generator.md

bench-counted:           ## what counting in guests repeats to, and what it finds; half an hour
	scripts/prepare --guest --kernel 6.1 --kernel 6.12
	cargo bench -q --locked -p fslab --bench counted -- $(CURDIR)/docs/method/counted.md \
		$(CURDIR)/target/kernels/linux-image-6.1.*.deb $(CURDIR)/target/kernels/linux-image-6.12.*.deb

calibrate:               ## how often the statistics are right, by simulation; minutes
	cargo bench -q --locked -p analysis --bench calibrate -- $(CURDIR)/docs/method/calibration.md

check:                   ## format, lints, reference pages in step
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo run -q --locked -p fslab -- docs --check docs/reference

docs:                    ## write the reference pages anew
	cargo run -q --locked -p fslab -- docs docs/reference

ci: test check           ## what a change must pass

prepare:
	scripts/prepare

clean-machine:           ## undo what a killed run left behind
	target/release/fslab clean
