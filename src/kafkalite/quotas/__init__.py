"""How much a client may have of a broker: who is limited by what, what was had, and for how long
whoever had too much has to wait. Knows no request and no connection.
"""
