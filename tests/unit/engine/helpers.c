/* Helpers of the engine tests: see helpers.h. */
#include "engine/helpers.h"

#include "temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

bool helper_aborts(void (*run)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, STDERR_FILENO);
        dup2(null, STDOUT_FILENO);
        signal(SIGABRT, SIG_DFL);
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

void helper_capture_stderr(struct buf *out, void (*run)(void *context), void *context)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    run(context);
    fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    buf_clear(out);
    rewind(file);
    for (int c; (c = getc(file)) != EOF;) {
        buf_append_char(out, (char)c);
    }
    fclose(file);
    buf_cstr(out);
}

const char *helper_reply_text(struct reply *r, struct buf *out)
{
    reply_end(r);
    buf_clear(out);
    for (uint32_t i = 0; i < r->piece_count; i++) {
        buf_append(out, r->pieces[i].ptr, r->pieces[i].len);
    }
    return buf_cstr(out);
}

int helper_words(const char *text, struct slice *argv, int max)
{
    int count = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        assert_true(count < max);
        argv[count++] = slice_of(text, len);
        text += len + (text[len] == ' ');
    }
    return count;
}

void helper_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

const char *helper_read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    buf_clear(out);
    for (int c; (c = getc(file)) != EOF;) {
        buf_append_char(out, (char)c);
    }
    fclose(file);
    return buf_cstr(out);
}

char *helper_make_directory(void)
{
    char *path = temporary_template("engine");
    assert_non_null(mkdtemp(path));
    return path;
}

void helper_remove_directory(char *path)
{
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            assert_int_equal(unlinkat(dirfd(directory), e->d_name, 0), 0);
        }
    }
    closedir(directory);
    assert_int_equal(rmdir(path), 0);
    free(path);
}
