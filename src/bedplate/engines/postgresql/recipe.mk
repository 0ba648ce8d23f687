# Builds the parts of PostgreSQL that bedplate uses, in one run of make, so that no processor waits
# at the end of each folder. Run from the top of a configured build folder: make -f recipe.mk -j N all
#
# PostgreSQL's makefiles rely on three things being there before folders are built side by side:
# the generated headers, the port and common libraries, and the frontend libraries.

frontend_libraries := src/interfaces/libpq src/fe_utils

# plpgsql and snowball are part of every initdb; the conversions serve clients of another encoding. All of contrib is for dumps of
# others' databases: its own makefile leaves out what a library is missing for.
modules := src/pl/plpgsql src/backend/snowball src/backend/utils/mb/conversion_procs contrib

programs := $(addprefix src/bin/,initdb pg_ctl psql pgbench pg_controldata pg_waldump pg_checksums \
  pg_config pg_test_fsync pg_dump)

installed := src/backend src/timezone src/interfaces/libpq $(modules) $(programs) $(EXTRA_INSTALLED)
installs := $(addsuffix .install,$(installed))
folders := src/port src/common src/backend src/timezone $(frontend_libraries) $(modules) $(programs)

.PHONY: all install generated-headers $(folders) $(installs)

all: src/backend src/timezone $(modules) $(programs)

generated-headers:
	$(MAKE) -C src/backend generated-headers

src/port: generated-headers
src/common: src/port
src/backend src/timezone $(frontend_libraries) $(modules): src/common
# dblink and vacuumlo are linked with libpq.
contrib $(programs): $(frontend_libraries)

$(folders):
	$(MAKE) -C $@ all

install: $(installs)

$(installs): %.install:
	$(MAKE) -C $* install
