"""A load generator that is a witness: each request ends in exactly one outcome, decided from bytes.

One asyncio loop, one protocol object per connection, no threads but the one that asks the resolver. Every
module reads only from those above it in this list:

    sse, http1, histogram       bytes to events, bytes to a response, durations to percentiles
    parsing, settings           the environment, checked
    answer, outcome             what a response amounts to
    arrival, lag, journal       when to send, how late we are, what is written
    connection, exchange        one connection, one request on it
    tally, summary, merge       counts over a run, over several
    sender, run, cli            one request, one run, the command
"""
