return judgeObserved(obj)
  or newHealth("Healthy", readNumber(obj, "status", "currentAvailable") .. " of " .. readNumber(obj, "status", "totalReplicas")
    .. " pods are available, and " .. readNumber(obj, "status", "unavailableAllowed") .. " may become unavailable.")
