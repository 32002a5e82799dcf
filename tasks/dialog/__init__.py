"""Dialog with a list of responses: which of all candidates does the bot give next?"""
