/* The checker: cc -O2 -o checker checker.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 1024, BYTES = 39 };

static unsigned checksum(const char *text, size_t bytes)
{
    unsigned sum = 2166136261u; /* FNV-1a */
    for (size_t at = 0; at < bytes; at++)
        sum = (sum ^ (unsigned char)text[at]) * 16777619u;
    return sum;
}

int main(int count, char **words)
{
    static unsigned long long last[CLIENTS];
    const char *wrong = "";
    FILE *log = NULL;
    if (count < 2 || chdir(words[1]) != 0 || (log = fopen("log", "rb")) == NULL) {
        puts("{\"clients\": {}, \"refused\": [\"there is no log\"]}");
        return 0;
    }
    char line[BYTES + 1] = {0};
    while (fread(line, 1, BYTES, log) == BYTES) {
        unsigned client, sum;
        unsigned long long number;
        /* Your engine's recovery: a line that is not whole was never acknowledged, nor anything behind it. */
        if (sscanf(line, "%u %llu %x", &client, &number, &sum) != 3 || checksum(line, BYTES - 9) != sum)
            break;
        if (client >= CLIENTS || number != last[client] + 1)
            wrong = "\"a number is missing\"";
        else
            last[client] = number;
    }
    const char *between = "";
    printf("{\"clients\": {");
    for (int client = 0; client < CLIENTS; client++) {
        if (last[client] != 0) {
            printf("%s\"%d\": %llu", between, client, last[client]);
            between = ", ";
        }
    }
    printf("}, \"wrong\": [%s]}\n", wrong);
    return 0;
}
