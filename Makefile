# fslab: `make demo` measures this machine, `make test` runs all tests. Both install missing packages.
CARGO_BUILD_JOBS ?= $(shell nproc)
export CARGO_BUILD_JOBS

.PHONY: demo test campaign mutants sanitize bench crosscheck bench-icount calibrate check docs book dist ci prepare clean-machine

demo:                    ## measure the filesystems of this machine and of a guest, and write a report
	command -v cc >/dev/null || scripts/prepare
	scripts/prepare --guest --kernel 6.12,6.1 & packages=$$!; \
		cargo build --profile demo --locked -p fslab && wait $$packages
	kernel=$$(ls target/kernels/linux-image-6.*.deb 2>/dev/null | sort -V | tail -n 1); \
		target/demo/fslab demo $${kernel:+--kernel "$$kernel"}

test:                    ## run all tests; as root, including those that require root
	scripts/prepare --browser --guest --mounts --mpi --targets --kernel 6.12,6.1 --kernel uml
	scripts/test

campaign:                ## test kills, power loss, dangerous storage, hostile input (hours); SECTION=NAME runs one section
	scripts/prepare --guest --targets --mounts --mpi --gluster --kernel 6.12,6.1 --kernel uml
	scripts/campaign $(SECTION)

mutants:                 ## mutation tests of the guard, the undo journal, the store, and the supervisor; hours
	scripts/mutants

sanitize:                ## test the crates with unsafe code under the address sanitizer of nightly Rust (minutes)
	scripts/sanitize

bench:                   ## measure load generator overhead against bare loops and other programs (minutes)
	scripts/prepare fio bonnie++ fs_mark:fsmark dbench
	cargo bench -q --locked -p engine --bench generator -- $(CURDIR)/docs/method/generator-overhead.md

crosscheck:              ## compare the speeds that fslab and fio measure (40 minutes)
	scripts/prepare fio
	scripts/crosscheck

bench-icount:            ## measure the repeatability of icount guests and what they detect (half an hour)
	scripts/prepare --guest --kernel 6.1 --kernel 6.12
	cargo bench -q --locked -p fslab --bench icount -- $(CURDIR)/docs/method/icount.md \
		$(CURDIR)/target/kernels/linux-image-6.1.*.deb $(CURDIR)/target/kernels/linux-image-6.12.*.deb

calibrate:               ## verify error rates of the statistics by simulation (minutes)
	cargo bench -q --locked -p analysis --bench calibrate -- $(CURDIR)/docs/method/calibration.md

check:                   ## check formatting, lints, and reference pages
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do \
		! ls "$$(rustc --print sysroot)"/lib/rustlib | grep -q $$target || \
			cargo check -q --locked -p sys --target $$target || exit 1; \
	done
	cargo run -q --locked -p fslab -- docs --check docs/reference

docs:                    ## regenerate the reference pages
	cargo run -q --locked -p fslab -- docs docs/reference

book:                    ## build the documentation as a website in target/book, and check its links
	scripts/book

dist:                    ## build static binaries, packages, SBOM, and checksums in target/release-files
	scripts/prepare musl-gcc:musl-tools rpmbuild:rpm
	scripts/dist

ci: test check           ## run all checks that a change must pass

prepare:
	scripts/prepare

clean-machine:           ## undo the changes of a killed run
	target/demo/fslab clean
