# A test-and-set lock, for ever; safe.
shared taken = 0, inside = 0;
thread a, b, c {
  while (true) {
    when (taken == 0) taken := 1;
    inside := inside + 1;
    assert(inside == 1);
    inside := inside - 1;
    taken := 0;
  }
}
