// The writer: one thread for each client, and a table in memory so small that it is flushed and merged all the while.
#include "notes.hpp"
#include <chrono>
#include <fcntl.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <thread>
#include <unistd.h>

static void must(const leveldb::Status &status)
{
    if (!status.ok())
        fail(status.ToString());
}

int main(int count, char **words)
{
    if (count < 2)
        fail("a directory is missing");
    std::fprintf(stderr, "LevelDB %d.%d\n", leveldb::kMajorVersion, leveldb::kMinorVersion); // the first line is the version
    const std::string sync = option(count, words, "sync", "on");
    const long clients = std::stol(option(count, words, "clients", "1"));
    const std::chrono::seconds duration(std::stol(option(count, words, "duration", "1")));
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    leveldb::DB *base = nullptr;
    must(leveldb::DB::Open(options, std::string(words[1]) + "/base", &base));
    const int directory = open(words[1], O_RDONLY | O_DIRECTORY);
    if (directory < 0 || fsync(directory) != 0)
        fail("the directory cannot be synced");
    if (dprintf(1, "begin\n") < 0)
        fail("standard output");
    const auto until = std::chrono::steady_clock::now() + duration;
    std::vector<std::thread> threads;
    for (uint32_t client = 0; client < clients; client++)
        threads.emplace_back([=] {
            std::map<std::string, uint64_t> balances;
            for (uint64_t number = 1; std::chrono::steady_clock::now() < until; number++) {
                const std::string key = note_key(client, number), account = balance_key(client, key);
                leveldb::WriteBatch batch;
                batch.Put(key, content_of(key));
                batch.Put(account, big_endian(++balances[account], 8));
                leveldb::WriteOptions how;
                how.sync = sync == "on" || (sync == "every-50th" && number % 50 == 0);
                must(base->Write(how, &batch));
                // One write for the whole line.
                if (dprintf(1, "ack %u %llu\n", client, static_cast<unsigned long long>(number)) < 0)
                    fail("standard output");
            }
        });
    for (auto &thread : threads)
        thread.join();
    _exit(0); // without a clean end
}
