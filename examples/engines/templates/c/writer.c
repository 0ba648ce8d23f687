/* The writer: cc -O2 -o writer writer.c */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static unsigned checksum(const char *text, size_t bytes)
{
    unsigned sum = 2166136261u; /* FNV-1a */
    for (size_t at = 0; at < bytes; at++)
        sum = (sum ^ (unsigned char)text[at]) * 16777619u;
    return sum;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Your engine's commit: on the disk when it returns. */
static void commit(int log, unsigned client, unsigned long long number)
{
    char line[64];
    int bytes = snprintf(line, sizeof line, "%9u %19llu ", client, number);
    bytes += snprintf(line + bytes, sizeof line - (size_t)bytes, "%08x\n", checksum(line, (size_t)bytes));
    if (write(log, line, (size_t)bytes) != bytes || fdatasync(log) != 0)
        fail("log");
}

int main(int count, char **words)
{
    unsigned clients = 1;
    double duration = 1;
    for (int at = 2; at < count; at++) {
        if (strncmp(words[at], "--clients=", 10) == 0)
            clients = (unsigned)atoi(words[at] + 10);
        else if (strncmp(words[at], "--duration=", 11) == 0)
            duration = atof(words[at] + 11);
    }
    fputs("template in C 1\n", stderr); /* the first line is the version */
    if (count < 2 || chdir(words[1]) != 0)
        fail("the directory");
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, 0600);
    int directory = open(".", O_RDONLY | O_DIRECTORY);
    if (log < 0 || directory < 0 || fsync(log) != 0 || fsync(directory) != 0)
        fail("log");
    if (write(1, "begin\n", 6) != 6)
        fail("standard output");
    double until = now() + duration;
    for (unsigned long long number = 1; now() < until; number++) {
        for (unsigned client = 0; client < clients; client++) {
            commit(log, client, number);
            /* One write for the whole line: what waits in a buffer of stdio is not acknowledged. */
            if (dprintf(1, "ack %u %llu\n", client, number) < 0)
                fail("standard output");
        }
    }
    return 0;
}
