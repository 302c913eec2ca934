/* INFO's text cut into fields, and fields in the two formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metrics/exposition.h"
#include "metrics/table.h"

static const char info[] = "# Server\r\nredis_version:7.2.6\r\nos:Linux \"x\" \\y\r\nhz:10\r\n"
                           "\r\n# Memory\r\nused_memory:5\r\nused_memory_peak_perc:12.50%\r\n"
                           "used_memory_human:5B\r\navailable_system_memory:unavailable\r\n"
                           "\r\n# Replication\r\nrole:slave\r\nmaster_host:h\r\nmaster_port:1\r\n"
                           "master_link_status:down\r\nslave_priority:100\r\n"
                           "slave0:ip=10.0.0.1,port=7,state=online,offset=3,lag=1\r\n"
                           "\r\n# CPU\r\nused_cpu_sys:1.5\r\n"
                           "\r\n# Commandstats\r\n"
                           "cmdstat_get:calls=2,usec=3000001,usec_per_call=1.00,"
                           "rejected_calls=0,failed_calls=1\r\n"
                           "cmdstat_set:calls=4,usec=5,usec_per_call=1.00,rejected_calls=6,"
                           "failed_calls=7\r\n"
                           "\r\n# Errorstats\r\nerrorstat_A:\"B\\\xff:count=9\r\n"
                           "\r\n# Latencystats\r\nlatency_percentiles_usec_get:p50=1.5,p99.9=2\r\n"
                           "\r\n# Keyspace\r\ndb3:keys=1,expires=0,avg_ttl=1500,cached_keys=1\r\n"
                           "dbx:keys=1\r\n";

static void cut(struct figures *f)
{
    *f = (struct figures){.count = 0};
    buf_append(&f->text, info, sizeof(info) - 1);
    figures_cut(f);
}

static void test_find(void **state)
{
    (void)state;
    struct figures f;
    struct slice part;
    unsigned hint = 7;
    cut(&f);
    const struct figure *item = figures_find(&f, "keyspace", SLICE("db3"), &hint);
    assert_non_null(item);
    assert_true(figures_part(item->value, SLICE("avg_ttl"), &part));
    assert_true(slice_equal(part, SLICE("1500")));
    assert_false(figures_part(item->value, SLICE("ttl"), &part));
    assert_non_null(figures_find(&f, "server", SLICE("hz"), &hint)); /* round the end */
    assert_null(figures_find(&f, "memory", SLICE("hz"), &hint));
    item = figures_find(&f, "errorstats", SLICE("errorstat_A:\"B\\\xff"), NULL);
    assert_non_null(item);
    figures_deinit(&f);
}

static const char *write(struct buf *out, bool open_metrics)
{
    struct figures f;
    struct exposition x = {.out = out, .open_metrics = open_metrics};
    cut(&f);
    exposition_write_figures(&x, &f);
    exposition_end(&x);
    figures_deinit(&f);
    return buf_cstr(out);
}

static void assert_lines(const char *text, const char *const *lines)
{
    for (; *lines; lines++) {
        if (!strstr(text, *lines)) {
            print_error("missing: %s\nin: %s\n", *lines, text);
        }
        assert_non_null(strstr(text, *lines));
    }
}

static void test_prometheus(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "# HELP redis_hz INFO server: hz\n# TYPE redis_hz gauge\nredis_hz 10\n",
        "redis_instance_info{role=\"slave\",redis_version=\"7.2.6\",redis_build_id=\"\",",
        "os=\"Linux \\\"x\\\" \\\\y\"",
        "\nredis_memory_used_bytes 5\n",
        "\nredis_memory_used_peak_percentage 12.50\n",
        "\nredis_master_link_up{master_host=\"h\",master_port=\"1\"} 0\n",
        "\nredis_slave_priority 100\n",
        "\nredis_connected_slave_lag_seconds{slave_ip=\"10.0.0.1\",slave_port=\"7\",slave_state="
        "\"online\"} 1\n",
        "# TYPE redis_cpu_sys_seconds_total counter\nredis_cpu_sys_seconds_total 1.5\n",
        "# HELP redis_commands_total INFO commandstats: cmdstat_*, calls\n"
        "# TYPE redis_commands_total counter\n"
        "redis_commands_total{cmd=\"get\"} 2\nredis_commands_total{cmd=\"set\"} 4\n# ",
        "\nredis_commands_duration_seconds_total{cmd=\"get\"} 3.000001\n",
        "\nredis_errors_total{err=\"A:\\\"B\\\\?\"} 9\n",
        "\nredis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.5\"} 1.5\n",
        "\nredis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.999\"} 2\n",
        "\nredis_latency_percentiles_usec_sum{cmd=\"get\"} 3000001\n",
        "\nredis_latency_percentiles_usec_count{cmd=\"get\"} 2\n",
        "\nredis_db_avg_ttl_seconds{db=\"db3\"} 1.500000\n",
        NULL,
    };
    struct buf out = {0};
    const char *text = write(&out, false);
    assert_lines(text, lines);
    assert_null(strstr(text, "dbx"));
    assert_null(strstr(text, "available_system_memory"));
    assert_null(strstr(text, "EOF"));
    buf_deinit(&out);
}

static void test_open_metrics(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "# TYPE redis_cpu_sys_seconds counter\nredis_cpu_sys_seconds_total 1.5\n",
        "# TYPE redis_commands counter\nredis_commands_total{cmd=\"get\"} 2\n",
        "\nredis_hz 10\n",
        NULL,
    };
    struct buf out = {0};
    const char *text = write(&out, true);
    assert_lines(text, lines);
    assert_string_equal(text + out.len - 6, "# EOF\n");
    buf_deinit(&out);
}

/* Names are well formed and not twice there; several rows of a kind have labels to tell them
 * apart. */
static void test_table(void **state)
{
    (void)state;
    for (const struct metric_row *row = metric_rows; row->section; row++) {
        assert_non_null(row->field);
        assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                         strlen(row->name));
        assert_true(!(row->open || row->numbered) || row->labels[0].name);
        for (const struct metric_row *other = metric_rows; other < row; other++) {
            assert_string_not_equal(row->name, other->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_prometheus),
        cmocka_unit_test(test_open_metrics),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
