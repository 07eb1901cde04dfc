// A shared pointer: the last owner destroys.
#include <atomic>
#include <memory>
#include <thread>
#include "explored.h"

static std::atomic<int> destroyed{0};

struct Object {
  int value = 4;
  ~Object() { destroyed++; }
};
static std::atomic<int> total{0};

static void use(std::shared_ptr<Object> object) { total += object->value; }

int main() {
  auto object = std::make_shared<Object>();
  std::thread a(use, object), b(use, object);
  object.reset();
  a.join();
  b.join();
  END_STATE(destroyed * 100 + total);
}
