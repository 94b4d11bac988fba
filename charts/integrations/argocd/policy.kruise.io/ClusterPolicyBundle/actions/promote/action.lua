return promoteBundle(obj)
