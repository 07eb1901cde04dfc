# A value is handed over by two semaphores; safe.
shared empty = 1, full = 0, slot = 0;
thread producer {
  when (empty > 0) empty := empty - 1;
  slot := 1;
  full := full + 1;
  when (empty > 0) empty := empty - 1;
  slot := 2;
  full := full + 1;
}
thread consumer {
  when (full > 0) full := full - 1;
  assert(slot == 1);
  empty := empty + 1;
  when (full > 0) full := full - 1;
  assert(slot == 2);
  empty := empty + 1;
}
