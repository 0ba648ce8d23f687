// The checker: RocksDB recovers as it opens its folder; then the numbers of each client, and the balances.
#include "notes.hpp"
#include <rocksdb/db.h>
#include <memory>

int main(int count, char **words)
{
    if (count < 2)
        fail("a directory is missing");
    Answer answer;
    rocksdb::DB *base = nullptr;
    rocksdb::Status status = rocksdb::DB::Open(rocksdb::Options(), std::string(words[1]) + "/base", &base);
    if (status.ok()) {
        rocksdb::ReadOptions how;
        how.verify_checksums = true;
        const std::unique_ptr<rocksdb::Iterator> entries(base->NewIterator(how));
        for (entries->SeekToFirst(); entries->Valid(); entries->Next())
            answer.look(entries->key().ToString(), entries->value().ToString());
        status = entries->status();
    }
    if (!status.ok())
        answer.refused.push_back(status.ToString());
    answer.print();
    return 0;
}
