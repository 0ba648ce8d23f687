"""fio: one run for each job, and pg_test_fsync."""
