/* Names for temporary files of unit tests. */
#ifndef TESTS_UNIT_TEMPORARY_H
#define TESTS_UNIT_TEMPORARY_H

/* "<TMPDIR or /tmp>/<name>-XXXXXX" for mkstemp and mkdtemp; the caller frees it. */
char *temporary_template(const char *name);

#endif
