// Two threads write, one reads, through one database.
#include <cassert>
#include <string>
#include <thread>
#include "leveldb/db.h"
int main(int argc, char **argv) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.compression = leveldb::kNoCompression;
  std::string path = argc > 1 ? argv[1] : "/tmp/foretell-leveldb";
  leveldb::DestroyDB(path, options);
  leveldb::DB *db = nullptr;
  if (!leveldb::DB::Open(options, path, &db).ok()) return 1;
  auto put = [db](const char *key) {
    leveldb::Status status = db->Put(leveldb::WriteOptions(), key, "value");
    assert(status.ok());
  };
  std::thread one(put, "one"), two(put, "two");
  std::string seen;
  db->Get(leveldb::ReadOptions(), "one", &seen);
  one.join();
  two.join();
  assert(db->Get(leveldb::ReadOptions(), "one", &seen).ok() && seen == "value");
  assert(db->Get(leveldb::ReadOptions(), "two", &seen).ok() && seen == "value");
  delete db;
}
