# After the paper's examples: two sums in any order; safe.
shared x = 0, s = 0, t = 0, done = 0;
mutex m;
thread one {
  lock(m);
  s := s + 1;
  x := s + t;
  unlock(m);
  done := done + 1;
}
thread two {
  lock(m);
  t := t + 2;
  x := s + t;
  unlock(m);
  done := done + 1;
}
thread check {
  assume(done == 2);
  assert(x == 3);
}
