/* keydb-check-aof: reads an AOF as the server would, without a server, and says whether it is
 * whole: the manifest of one with several files, or a single file of old. Ends with 0 when the
 * server can load it, after a cut that was asked for as well, else with 1. What it asks and prints
 * has the shape of redis-check-aof's, which scripts know. */
#include "base/buf.h"
#include "base/num.h"
#include "base/program.h"
#include "persist/aof_manifest.h"
#include "persist/aof_reader.h"
#include "tools/check-aof/check.h"
#include "tools/check-rdb/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Largest manifest that is read: as the server's. */
#define MANIFEST_MAX_BYTES ((off_t)64 << 20)

/* Prints what came of a file; true when it is fine now. */
static bool tell(enum check_result result, const char *kind, const char *name,
                 const struct check_wish *wish)
{
    switch (result) {
    case CHECK_VALID:
        printf("%sAOF %s is valid\n", kind, name);
        return true;
    case CHECK_EMPTY:
        printf("%sAOF %s is empty\n", kind, name);
        return true;
    case CHECK_FIXED:
        printf("Successfully truncated AOF %s\n", name);
        return true;
    case CHECK_CUT_TO_TIME:
        printf("Successfully truncated AOF %s to timestamp %" PRId64 "\n", name, wish->time_s);
        return true;
    case CHECK_BAD:
        return false;
    }
    return false;
}

/* ---- several files ---- */

/* The path of a file beside the manifest. */
static const char *path_beside(struct buf *path, const char *manifest, const char *name)
{
    const char *slash = strrchr(manifest, '/');
    buf_clear(path);
    if (slash) {
        buf_append(path, manifest, (size_t)(slash - manifest) + 1);
    }
    buf_append_cstr(path, name);
    return buf_cstr(path);
}

/* True when nothing is in the increments from `i` on: what stands before them is the end, as it is
 * for the server. */
static bool rest_is_empty(const struct aof_manifest *m, const char *manifest, int i)
{
    struct buf path = {0};
    struct stat about;
    const struct aof_file *f;
    bool empty = true;
    for (; empty && (f = aof_manifest_increment(m, i)); i++) {
        empty = stat(path_beside(&path, manifest, f->name), &about) == 0 && about.st_size == 0;
    }
    buf_deinit(&path);
    return empty;
}

static bool check_base(const struct aof_manifest *m, const char *manifest,
                       const struct check_wish *wish)
{
    const struct aof_file *base = aof_manifest_base(m);
    struct buf path = {0};
    int fd = open(path_beside(&path, manifest, base->name), O_RDONLY | O_CLOEXEC);
    bool fine = fd >= 0;
    if (fine) {
        printf("Start to check BASE AOF (%s format).\n", check_is_rdb(fd) ? "RDB" : "RESP");
        close(fd);
        enum check_result result =
            check_file(path.data, base->name, rest_is_empty(m, manifest, 0), wish);
        fine = tell(result, "BASE ", base->name, wish);
    } else {
        printf("Cannot open file %s: %s\n", path.data, strerror(errno));
    }
    buf_deinit(&path);
    return fine;
}

static bool check_increments(const struct aof_manifest *m, const char *manifest,
                             const struct check_wish *wish)
{
    struct buf path = {0};
    const struct aof_file *f;
    bool fine = true;
    if (aof_manifest_increments(m) > 0) {
        printf("Start to check INCR files.\n");
    }
    for (int i = 0; fine && (f = aof_manifest_increment(m, i)); i++) {
        path_beside(&path, manifest, f->name);
        enum check_result result =
            check_file(path.data, f->name, rest_is_empty(m, manifest, i + 1), wish);
        fine = tell(result, "INCR ", f->name, wish);
    }
    buf_deinit(&path);
    return fine;
}

/* Reads the whole of a small file. */
static bool read_text(int fd, struct buf *text)
{
    struct stat about;
    ssize_t got;
    if (fstat(fd, &about) < 0 || about.st_size > MANIFEST_MAX_BYTES) {
        return false;
    }
    do {
        got = pread(fd, buf_reserve(text, 4096), 4096, (off_t)text->len);
        text->len += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && text->len <= (size_t)MANIFEST_MAX_BYTES) || (got < 0 && errno == EINTR));
    return got == 0;
}

static bool check_manifest(int fd, const char *name, const struct check_wish *wish)
{
    struct aof_manifest m = {0};
    struct buf text = {0};
    const char *error;
    int line;
    bool fine = false;
    printf("Start checking Multi Part AOF\n");
    if (!read_text(fd, &text)) {
        printf("Cannot read file: %s\n", name);
    } else if (!aof_manifest_parse(&m, buf_slice(&text), &error, &line)) {
        printf("*** FATAL AOF MANIFEST FILE ERROR ***\nReading the manifest file, at line %d\n%s\n",
               line, error);
    } else {
        fine = (!aof_manifest_base(&m) || check_base(&m, name, wish)) &&
               check_increments(&m, name, wish);
    }
    if (fine) {
        printf("All AOF files and manifest are valid\n");
    }
    aof_manifest_deinit(&m);
    buf_deinit(&text);
    return fine;
}

/* ---- what was asked for ---- */

/* True when the first line that does not begin with # begins as a manifest's does. */
static bool is_manifest(int fd, uint64_t size)
{
    static const char head[] = {'f', 'i', 'l', 'e', ' '};
    char found[sizeof(head)];
    struct aof_reader r;
    enum aof_record record;
    aof_reader_init(&r, fd, size, 0);
    do {
        record = aof_reader_next(&r);
    } while (record == AOF_NOTE);
    uint64_t at = r.at;
    aof_reader_deinit(&r);
    return record != AOF_COMMAND &&
           pread(fd, found, sizeof(found), (off_t)at) == (ssize_t)sizeof(found) &&
           memcmp(found, head, sizeof(head)) == 0;
}

static bool check(const char *name, const struct check_wish *wish)
{
    struct stat about;
    bool fine = false;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0) {
        printf("Cannot open file %s: %s\n", name, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        printf("Cannot read file: %s\n", name);
    } else if (is_manifest(fd, (uint64_t)about.st_size)) {
        fine = check_manifest(fd, name, wish);
    } else {
        printf("Start checking Old-Style AOF\n");
        fine = tell(check_file(name, name, true, wish), "", name, wish);
    }
    if (fd >= 0) {
        close(fd);
    }
    return fine;
}

/* What the arguments wish; the file's name, or NULL when they say nothing that makes sense. */
static const char *parse_arguments(int argc, char **argv, struct check_wish *wish)
{
    if (argc == 2 && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0) {
        return argv[1];
    }
    if (argc == 3 && strcmp(argv[1], "--fix") == 0) {
        wish->fix = true;
        return argv[2];
    }
    if (argc == 4 && strcmp(argv[1], "--truncate-to-timestamp") == 0) {
        wish->to_time = true;
        return argv[3];
    }
    return NULL;
}

/* To standard output, as redis-check-aof does. */
static void print_usage(void)
{
    printf(
        "Usage: %s [--fix|--truncate-to-timestamp $timestamp] <file.manifest|file.aof>\n"
        "\n"
        "Options:\n"
        "  --fix          Ask, then cut the file at its first fault.\n"
        "  --truncate-to-timestamp <seconds>  Cut the last file before the first command that was\n"
        "                 run later (with aof-timestamp-enabled).\n"
        "  -v, --version  Print the version.\n"
        "  -h, --help     Print this text.\n",
        program_name());
}

int main(int argc, char **argv)
{
    program_setup("keydb-check-aof", argv[0]);
    struct check_wish wish = {0};
    const char *name = parse_arguments(argc, argv, &wish);
    if (!name) {
        print_usage();
        return 1;
    }
    if (argc == 2 && (strcmp(name, "-v") == 0 || strcmp(name, "--version") == 0)) {
        printf("%s %s\n", program_name(), program_version());
        return 0;
    }
    if (wish.to_time && !num_parse_i64(slice_cstr(argv[2]), &wish.time_s)) {
        printf("Invalid timestamp, aborting...\n");
        return 1;
    }
    rdb_report_setup("check-aof");
    bool fine = check(name, &wish);
    rdb_report_teardown();
    return fflush(stdout) == 0 && fine ? 0 : 1;
}
