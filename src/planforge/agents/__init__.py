"""Who does the work: the ACP client, agent profiles, and the rehearsal agent."""
