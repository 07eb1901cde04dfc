// A shared_ptr variable is read and replaced without a lock.
#include <cassert>
#include <memory>
#include <string>
#include <thread>
struct Table { std::string name; int version; };
std::shared_ptr<const Table> current = std::make_shared<const Table>(Table{"first", 1});
int main() {
  std::thread w([] { current = std::make_shared<const Table>(Table{"second", 2}); });
  std::thread r([] { auto t = current; assert(t->version == 1 || t->version == 2); });
  w.join(); r.join();
}
