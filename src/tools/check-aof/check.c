/* See check.h. */
#include "tools/check-aof/check.h"

#include "base/num.h"
#include "base/program.h"
#include "persist/aof_reader.h"
#include "tools/check-rdb/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A note that tells when the commands behind it were run. */
static const char time_prefix[] = {'T', 'S', ':'};

enum outcome {
    OUTCOME_END,
    OUTCOME_FAULT,  /* told */
    OUTCOME_TIME,   /* a time that is later than the one wished */
    OUTCOME_FAILED, /* told: nothing can be said of the file */
};

struct check {
    const char *path, *name;
    const struct check_wish *wish;
    struct aof_reader r;
    uint64_t line; /* that the next record begins at: heads, words and notes are lines */
    uint64_t whole, whole_line; /* behind the last record that is not within a transaction */
    bool in_unit;               /* MULTI was there, EXEC was not */
};

static enum outcome fault(uint64_t at, const char *text)
{
    printf("0x%16" PRIx64 ": %s\n", at, text);
    return OUTCOME_FAULT;
}

/* ---- records ---- */

static bool is_word(const struct check *c, const char *word)
{
    return c->r.argc == 1 && slice_equal_nocase(c->r.argv[0], word);
}

/* Follows transactions; false, told, when the command cannot stand here. */
static bool take_command(struct check *c, uint64_t at)
{
    bool begins = is_word(c, "multi"), ends = is_word(c, "exec");
    if ((begins && c->in_unit) || (ends && !c->in_unit)) {
        printf("0x%16" PRIx64 ": Unexpected %s in AOF %s\n", at, begins ? "MULTI" : "EXEC",
               c->name);
        return false;
    }
    c->in_unit = (c->in_unit || begins) && !ends;
    c->line += 1 + 2 * (uint64_t)c->r.argc;
    return true;
}

/* OUTCOME_END: go on. */
static enum outcome take_note(struct check *c)
{
    struct slice text = c->r.argv[0];
    int64_t time_s;
    c->line++;
    if (!c->wish->to_time || text.len < sizeof(time_prefix) ||
        memcmp(text.ptr, time_prefix, sizeof(time_prefix)) != 0) {
        return OUTCOME_END;
    }
    text = slice_of(text.ptr + sizeof(time_prefix), text.len - sizeof(time_prefix));
    if (!num_parse_i64(text, &time_s)) {
        printf("Invalid timestamp annotation\n");
        return OUTCOME_FAILED;
    }
    return time_s > c->wish->time_s ? OUTCOME_TIME : OUTCOME_END;
}

static enum outcome take_end(const struct check *c, enum aof_record record)
{
    switch (record) {
    case AOF_END:
        return c->in_unit ? fault(c->r.size, "Reached EOF before reading EXEC for MULTI")
                          : OUTCOME_END;
    case AOF_TORN:
        return fault(c->r.size, "Reached EOF within a command");
    case AOF_DAMAGED:
        return fault(c->r.error_at, c->r.error);
    default:
        printf("Failed to read from AOF %s, aborting...\n", c->name);
        return OUTCOME_FAILED;
    }
}

static enum outcome read_records(struct check *c)
{
    for (;;) {
        enum outcome outcome = OUTCOME_END;
        uint64_t at = c->r.at;
        enum aof_record record = aof_reader_next(&c->r);
        if (record == AOF_COMMAND) {
            outcome = take_command(c, at) ? OUTCOME_END : OUTCOME_FAULT;
        } else if (record == AOF_NOTE) {
            outcome = take_note(c);
        } else {
            return take_end(c, record);
        }
        if (outcome != OUTCOME_END) {
            return outcome;
        }
        if (!c->in_unit) {
            c->whole = c->r.at;
            c->whole_line = c->line;
        }
    }
}

/* ---- cutting ---- */

/* Cuts the file behind its last whole record, for good. */
static bool cut(const struct check *c)
{
    return ftruncate(c->r.fd, (off_t)c->whole) == 0 && fsync(c->r.fd) == 0;
}

static bool user_agrees(void)
{
    char answer[16];
    printf("Continue? [y/N]: ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static enum check_result end_at_time(const struct check *c, bool last)
{
    if (c->whole == 0) {
        printf("AOF %s has nothing before timestamp %" PRId64 ", aborting...\n", c->path,
               c->wish->time_s);
    } else if (!last) {
        printf("Failed to truncate AOF %s to timestamp %" PRId64 " to offset %" PRIu64
               " because it is not the last file.\n"
               "If you insist, please delete all files after this file according to the manifest "
               "file and delete the corresponding records in manifest file manually. Then re-run "
               "%s.\n",
               c->path, c->wish->time_s, c->whole, program_name());
    } else if (!cut(c)) {
        printf("Failed to truncate AOF %s to timestamp %" PRId64 ": %s\n", c->name, c->wish->time_s,
               strerror(errno));
    } else {
        return CHECK_CUT_TO_TIME;
    }
    return CHECK_BAD;
}

static enum check_result end_at_fault(const struct check *c, bool last)
{
    if (!c->wish->fix) {
        printf("AOF %s is not valid. Use the --fix option to try fixing it.\n", c->name);
        return CHECK_BAD;
    }
    if (!last) {
        printf("Failed to truncate AOF %s because it is not the last file\n", c->name);
        return CHECK_BAD;
    }
    printf("This will shrink the AOF %s from %" PRIu64 " bytes, with %" PRIu64 " bytes, to %" PRIu64
           " bytes\n",
           c->name, c->r.size, c->r.size - c->whole, c->whole);
    if (!user_agrees()) {
        printf("Aborting...\n");
        return CHECK_BAD;
    }
    if (!cut(c)) {
        printf("Failed to truncate AOF %s: %s\n", c->name, strerror(errno));
        return CHECK_BAD;
    }
    return CHECK_FIXED;
}

static enum check_result judge(const struct check *c, enum outcome outcome, bool last)
{
    if (outcome == OUTCOME_FAILED) {
        return CHECK_BAD;
    }
    if (outcome == OUTCOME_TIME) {
        return end_at_time(c, last);
    }
    if (outcome == OUTCOME_END && c->wish->to_time) {
        printf("Truncate nothing in AOF %s to timestamp %" PRId64 "\n", c->name, c->wish->time_s);
        return CHECK_VALID;
    }
    printf("AOF analyzed: filename=%s, size=%" PRIu64 ", ok_up_to=%" PRIu64
           ", ok_up_to_line=%" PRIu64 ", diff=%" PRIu64 "\n",
           c->name, c->r.size, c->whole, c->whole_line, c->r.size - c->whole);
    return outcome == OUTCOME_END ? CHECK_VALID : end_at_fault(c, last);
}

/* ---- the file ---- */

bool check_is_rdb(int fd)
{
    char head[5];
    return pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, "REDIS", 5) == 0;
}

static enum check_result check_open_file(struct check *c, int fd, uint64_t size, bool last)
{
    if (check_is_rdb(fd)) {
        if (!rdb_report_run(fd, size, c->name, &c->whole)) {
            printf("RDB preamble of AOF file is not sane, aborting.\n");
            return CHECK_BAD;
        }
        printf("RDB preamble is OK, proceeding with AOF tail...\n");
    }
    aof_reader_init(&c->r, fd, size, c->whole);
    enum outcome outcome = read_records(c);
    enum check_result result = judge(c, outcome, last);
    aof_reader_deinit(&c->r);
    return result;
}

enum check_result check_file(const char *path, const char *name, bool last,
                             const struct check_wish *wish)
{
    struct check c = {.path = path, .name = name, .wish = wish, .line = 1, .whole_line = 1};
    struct stat about;
    enum check_result result = CHECK_BAD;
    int fd = open(path, (wish->fix || wish->to_time ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0) {
        printf("Cannot open file %s: %s, aborting...\n", path, strerror(errno));
    } else if (!S_ISREG(about.st_mode)) {
        printf("Cannot read file: %s is no regular file\n", path);
    } else if (about.st_size == 0) {
        result = CHECK_EMPTY;
    } else {
        result = check_open_file(&c, fd, (uint64_t)about.st_size, last);
    }
    if (fd >= 0) {
        close(fd);
    }
    return result;
}
