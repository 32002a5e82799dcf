"""Reading comprehension: which span of a passage answers a question?"""
