# Fig. 1 of 001 with the lock that repairs it; safe.
shared balance = *, x = *, w = *, d = *, withdrawn = 0, deposited = 0;
mutex m;
initially x == balance && w > 0 && d > 0;
thread withdraw {
  local t = 0;
  lock(m);
  t := balance;
  balance := t - w;
  unlock(m);
  withdrawn := 1;
}
thread deposit {
  local t = 0;
  lock(m);
  t := balance;
  balance := t + d;
  unlock(m);
  deposited := 1;
}
thread check {
  assume(deposited == 1 && withdrawn == 1);
  assert(balance == x + d - w);
}
