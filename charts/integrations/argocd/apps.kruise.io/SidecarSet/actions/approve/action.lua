return approveRevision(obj, nameRevision(obj))
