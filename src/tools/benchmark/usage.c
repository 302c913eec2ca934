/* The help text of keydb-benchmark: one table, printed in order. */
#include "tools/benchmark/usage.h"

#include "base/program.h"

struct usage_row {
    const char *option;
    const char *text;
};

static const struct usage_row rows[] = {
    {"-h <hostname>", "where the server is (127.0.0.1)"},
    {"-p <port>", "its TCP port (6379)"},
    {"-s <socket>", "its Unix socket; host and port are then not used"},
    {"-u <uri>", "redis://user:password@host:port/dbnum"},
    {"-a <password>", "log in with this password"},
    {"--user <username>", "log in as this user; needs -a"},
    {"--dbnum <db>", "SELECT this database first (0)"},
    {"-3", "speak RESP3 (HELLO 3)"},
    {"--enable-tracking", "send CLIENT TRACKING ON first"},
    {"--tls", "speak TLS; so does a uri with rediss://. Who signed the server's certificate is"},
    {"", "checked, not its names"},
    {"--sni <host>", "name of the server to ask for"},
    {"--cacert <file>", "certificates to trust (the system's)"},
    {"--cacertdir <dir>", "directory of certificates to trust"},
    {"--insecure", "trust any certificate"},
    {"--cert <file>", "certificate to show"},
    {"--key <file>", "its private key"},
    {"--tls-ciphers <l>", "ciphers of TLS up to 1.2, as ciphers(1ssl) has them"},
    {"--tls-ciphersuites <l>", "those of TLS 1.3"},
    {"-c <clients>", "parallel connections (50)"},
    {"--threads <num>", "threads that share the connections (1)"},
    {"-n <requests>", "requests a test (100000)"},
    {"-d <bytes>", "size of values (3)"},
    {"-P <requests>", "requests sent in one go on a connection (1)"},
    {"-k <boolean>", "1: keep connections; 0: a new one for each send (1)"},
    {"-r <keyspacelen>", "__rand_int__ in keys, members and scores becomes a random number of"},
    {"", "12 digits below this; without -r each test uses one key"},
    {"--sequential", "with -r: numbers in order, each once, instead of random ones"},
    {"--seed <number>", "start of the random numbers, for runs that can be repeated"},
    {"-t <tests>", "only these tests, separated by commas, by the names in the titles"},
    {"--mix <t=w,t=w>", "one test in which the named tests take turns at random by weight"},
    {"--duration <s>", "end each test after this time; without -n by time alone"},
    {"--rate <rps>", "send at this mean rate (Poisson); latency counts from the moment a"},
    {"", "request was due. The threads poll: give them cores of their own"},
    {"-l", "repeat the tests for ever"},
    {"-I", "open the connections and wait"},
    {"-x", "take the last argument of the command from standard input"},
    {"-e", "tell errors of the server (one a second) and go on, not stop at the first"},
    {"-q", "one line a test"},
    {"--csv", "comma separated values"},
    {"--json", "one JSON object a line and test, with the generator's own CPU time"},
    {"--precision <n>", "decimals of latencies, 0 to 6 (3)"},
    {"--help", "this text"},
    {"--version", "the version"},
};

void bench_usage_print(FILE *out)
{
    fprintf(out, "Usage: %s [OPTIONS] [COMMAND ARGS...]\n\nOptions:\n", program_name());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fprintf(out, " %-19s  %s\n", rows[i].option, rows[i].text);
    }
    fputs("\n --cluster does not exist yet.\n"
          "\nIn a command of your own __rand_int__ is replaced as -r says, __data__ by -d bytes.\n"
          "\nExamples:\n"
          "\n Everything, with the defaults:\n   $ keydb-benchmark\n"
          "\n SET and GET with 64-byte values over a million keys, two threads:\n"
          "   $ keydb-benchmark -t set,get -r 1000000 -d 64 -n 2000000 --threads 2\n"
          "\n Fill the database with exactly a million keys:\n"
          "   $ keydb-benchmark -t set -r 1000000 -n 1000000 --sequential -P 32 -q\n"
          "\n A command of your own:\n"
          "   $ keydb-benchmark -r 10000 -n 10000 lpush mylist __rand_int__\n"
          "\n Ten seconds of GET and SET, nine to one, at 50,000 requests a second:\n"
          "   $ keydb-benchmark --mix get=9,set=1 -r 1000000 --rate 50000 --duration 10\n",
          out);
}
