return judgeObserved(obj)
  or newHealth("Healthy", "Pods whose place is known: " .. countEntries(readTable(obj, "status", "podStates")) .. ".")
