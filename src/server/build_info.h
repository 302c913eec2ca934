/* What this binary was built from. */
#ifndef SERVER_BUILD_INFO_H
#define SERVER_BUILD_INFO_H

/* The commit's hash, eight hexadecimal digits, "00000000" when unknown. */
const char *build_git_sha(void);
/* An identifier of the build: hash of commit and version, hexadecimal. */
const char *build_id(void);

#endif
