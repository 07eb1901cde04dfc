// A lock-free stack of nodes that are used again. A thread that is about to pop has read the top and the
// next node; meanwhile another pops both and pushes the first again. The compare-and-swap succeeds, and a
// node that is in use becomes the top.
#include <atomic>
#include <cassert>
#include <cstdio>
#include <thread>

struct Node {
  std::atomic<int> users{0};
  std::atomic<Node *> next{nullptr};
};

class Stack {
 public:
  void push(Node *node) {
    Node *top = top_.load();
    do {
      node->next.store(top);
    } while (!top_.compare_exchange_strong(top, node));
  }

  Node *pop() {
    Node *top = top_.load();
    while (top != nullptr) {
      Node *next = top->next.load();
      if (top_.compare_exchange_strong(top, next)) return top;
    }
    return nullptr;
  }

 private:
  std::atomic<Node *> top_{nullptr};
};

static void acquire(Node *node) {
  if (node != nullptr) assert(node->users.fetch_add(1) == 0);  // BUG: two users
}

int main() {
  Node nodes[2];
  Stack stack;
  stack.push(&nodes[1]);
  stack.push(&nodes[0]);
  std::thread one([&] { acquire(stack.pop()); });
  std::thread two([&] {
    Node *first = stack.pop();
    Node *second = stack.pop();
    acquire(second);
    if (first != nullptr) stack.push(first);
    acquire(stack.pop());
  });
  one.join();
  two.join();
  acquire(stack.pop());
  std::puts("popped");
}
