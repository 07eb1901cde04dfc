// Which method is called is decided by another thread.
#include <atomic>
#include <thread>
#include "explored.h"

struct Shape {
  virtual ~Shape() = default;
  virtual int corners() const { return 0; }
};
struct Square : Shape {
  int corners() const override { return 4; }
};
static Shape circle;
static Square square;
static std::atomic<Shape *> shape{&circle};
static int seen;

int main() {
  std::thread a([] { seen = shape.load()->corners(); }), b([] { shape = &square; });
  a.join();
  b.join();
  END_STATE(seen);
}
