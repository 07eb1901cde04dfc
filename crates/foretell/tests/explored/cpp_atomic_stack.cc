// A lock-free stack with std::atomic: a push and a pop.
#include <atomic>
#include <thread>
#include "explored.h"

struct Node {
  int value;
  Node *next;
};
static std::atomic<Node *> top{nullptr};
static int popped;

static void push(Node *node) {
  node->next = top.load();
  while (!top.compare_exchange_weak(node->next, node)) {
  }
}
static void pop() {
  Node *old = top.load();
  while (old && !top.compare_exchange_weak(old, old->next)) {
  }
  if (old) popped = old->value;
}

int main() {
  Node one{1, nullptr};
  std::thread a(push, &one), b(pop);
  a.join();
  b.join();
  END_STATE(popped * 10 + (top.load() ? top.load()->value : 0));
}
