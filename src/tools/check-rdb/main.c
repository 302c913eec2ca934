/* keydb-check-rdb: reads an RDB file as the server would, without a server, and says what is in it
 * or at which offset it is damaged. Ends with 0 when it can be loaded, else with 1. What it prints
 * has the shape of redis-check-rdb's, which scripts know. */
#include "base/program.h"
#include "tools/check-rdb/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool check_file(const char *name)
{
    struct stat about;
    uint64_t end;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) < 0) {
        fprintf(stderr, "Cannot open file %s: %s\n", name, strerror(errno));
        return false;
    }
    uint64_t size = about.st_size > 0 ? (uint64_t)about.st_size : 0;
    bool fine = rdb_report_run(fd, size, name, &end);
    if (fine && end < size) {
        printf("[info] %" PRIu64 " bytes follow: the file is an AOF with a preamble, or damaged\n",
               size - end);
    }
    close(fd);
    return fine;
}

/* To standard error, as redis-check-rdb does. */
static void print_usage(void)
{
    fprintf(stderr,
            "Usage: %s <rdb-file-name>\n"
            "\n"
            "Options:\n"
            "  -v, --version  Print the version.\n"
            "  -h, --help     Print this text.\n",
            program_name());
}

int main(int argc, char **argv)
{
    program_setup("keydb-check-rdb", argv[0]);
    if (argc != 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        print_usage();
        return 1;
    }
    if (strcmp(argv[1], "-v") == 0 || strcmp(argv[1], "--version") == 0) {
        printf("%s %s\n", program_name(), program_version());
        return 0;
    }
    rdb_report_setup("check-rdb");
    bool fine = check_file(argv[1]);
    rdb_report_teardown();
    return fine && fflush(stdout) == 0 ? 0 : 1;
}
